//! Writes files into a bucket: S3, Google Cloud Storage, Azure Blob Storage, and compatible stores.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};

use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _};
use tokio::runtime::Runtime;

use crate::connector::Connector;

/// Bytes of one part of a large file, and the largest file that is sent in one piece. All parts but
/// the last are of the same size, and larger than the least that stores take.
const PART_BYTES: u64 = 8 << 20;

/// A bucket, and a path in it.
pub struct Objects {
    url: String,
    store: Box<dyn ObjectStore>,
    below: Path,
    runtime: Runtime,
}

/// Why a file cannot be written to the bucket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectFault {
    /// Not a URL of an object store.
    #[error("{0:?} is no object store; write it like s3://BUCKET/PATH, gs://… or az://…")]
    Url(String),
    /// A setting in the environment is missing or wrong.
    #[error("cannot use {url}: {source}")]
    Settings {
        /// Of the bucket.
        url: String,
        /// What is missing.
        source: object_store::Error,
    },
    /// The object store refuses or does not answer, also after retries.
    #[error("cannot write {name} to {url}: {source}")]
    Refused {
        /// Of the bucket.
        url: String,
        /// Which file.
        name: String,
        /// What it said.
        source: object_store::Error,
    },
    /// The draft cannot be read again, or no thread can be started to send it.
    #[error("cannot send {name}: {source}")]
    File {
        /// Which file.
        name: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Objects {
    /// The bucket and path of a URL: `s3://`, `gs://` or `az://`. Credentials, region and endpoint
    /// are those of the usual environment variables.
    pub fn open(url: &str) -> Result<Self, ObjectFault> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let (bucket, below) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(ObjectFault::Url(url.to_owned()));
        }
        let store = match scheme {
            "s3" | "s3a" => AmazonS3Builder::from_env()
                .with_bucket_name(bucket)
                .with_http_connector(Connector)
                .build()
                .map(|store| Box::new(store) as Box<dyn ObjectStore>),
            "gs" => GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(bucket)
                .with_http_connector(Connector)
                .build()
                .map(|store| Box::new(store) as Box<dyn ObjectStore>),
            "az" | "azure" => MicrosoftAzureBuilder::from_env()
                .with_container_name(bucket)
                .with_http_connector(Connector)
                .build()
                .map(|store| Box::new(store) as Box<dyn ObjectStore>),
            _ => return Err(ObjectFault::Url(url.to_owned())),
        };
        let settings = |source| ObjectFault::Settings { url: url.to_owned(), source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self {
            url: url.to_owned(),
            store: store.map_err(settings)?,
            below: Path::parse(below.trim_matches('/')).map_err(|fault| settings(fault.into()))?,
            runtime: runtime
                .map_err(|source| ObjectFault::File { name: url.to_owned(), source })?,
        })
    }

    /// Sends a file of `bytes` bytes. It is there as a whole, or not at all.
    pub(super) fn put(&self, file: &File, bytes: u64, name: &str) -> Result<(), ObjectFault> {
        let refused =
            |source| ObjectFault::Refused { url: self.url.clone(), name: name.to_owned(), source };
        let unread = |source| ObjectFault::File { name: name.to_owned(), source };
        // Percent-encoded names of folders stay as they are.
        let path = format!("{}/{name}", self.below);
        let path =
            Path::parse(path.trim_start_matches('/')).map_err(|fault| refused(fault.into()))?;
        let mut file = file;
        file.rewind().map_err(unread)?;
        self.runtime.block_on(async {
            if bytes <= PART_BYTES {
                let body = part(file).map_err(unread)?;
                self.store.put(&path, body.into()).await.map_err(refused)?;
                return Ok(());
            }
            let mut upload = self.store.put_multipart(&path).await.map_err(refused)?;
            let sent = send_parts(upload.as_mut(), file).await;
            if sent.is_err() {
                // What cannot be aborted either is swept up by the bucket's own rules.
                let _ = upload.abort().await;
            }
            sent.map_err(|fault| match fault {
                UploadFault::Unread(source) => unread(source),
                UploadFault::Refused(source) => refused(source),
            })
        })
    }
}

enum UploadFault {
    Unread(io::Error),
    Refused(object_store::Error),
}

async fn send_parts(upload: &mut dyn MultipartUpload, file: &File) -> Result<(), UploadFault> {
    loop {
        let body = part(file).map_err(UploadFault::Unread)?;
        if body.is_empty() {
            break;
        }
        upload.put_part(body.into()).await.map_err(UploadFault::Refused)?;
    }
    upload.complete().await.map_err(UploadFault::Refused)?;
    Ok(())
}

/// The next part; empty at the end.
fn part(file: &File) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    file.take(PART_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").field("url", &self.url).finish_non_exhaustive()
    }
}
