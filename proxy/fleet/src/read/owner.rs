//! To whom a GPU is given, by the labels of its exporter.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::identity::{Field, Identity};
use crate::kubelet::sharing;
use crate::quantity::GPU_OWNER;
use crate::reading::{Measured, Value};
use crate::row::Source;
use crate::sample::Label;
use crate::unknown::Known;

const DEVICE: &[Field] = &[Field::Instance, Field::Node, Field::Gpu, Field::Part];
const OWNER: &[Field] = &[Field::Namespace, Field::Pod, Field::Container];

/// An owner: its whole identity with its number, and whether a plugin shares the GPU.
type Owner = (usize, Arc<Identity>, bool);

/// The pods of each GPU.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Of each device each owner.
    pods: BTreeMap<Identity, BTreeMap<Identity, Owner>>,
}

impl Owners {
    /// A series of a GPU.
    pub(super) fn saw(&mut self, who: usize, identity: &Arc<Identity>, labels: &[Label<'_>]) {
        if identity.get(Field::Pod).is_none() {
            return;
        }
        let is_shared =
            labels.iter().any(|label| label.name == "vgpu" || label.value.contains("::"));
        let device = identity.part(DEVICE);
        let owners = self.pods.entry(device).or_default();
        owners
            .entry(identity.part(OWNER))
            .or_insert_with(|| (who, Arc::clone(identity), is_shared));
    }

    /// Tells who owns what.
    pub(super) fn tell(
        self,
        source: &'static Source,
        known: &mut Known,
        measured: &mut Vec<Measured>,
    ) {
        for owners in self.pods.into_values() {
            let several = owners.len() > 1;
            for (who, identity, is_shared) in owners.into_values() {
                known.made(GPU_OWNER, who, &identity);
                let sharing = sharing(several || is_shared, identity.is_part());
                measured.push(Measured {
                    quantity: GPU_OWNER,
                    value: Value::Number(1.0),
                    buckets: None,
                    identity,
                    attributes: vec![("sharing".to_owned(), sharing.to_owned())],
                    program: source.name,
                    from: "label pod".to_owned(),
                    how: String::new(),
                    age: None,
                });
            }
        }
    }
}
