//! Why a pod gets no sidecar.

/// What is in the way; the text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// The pod is none.
    #[error("`{0}` is not what a pod has there")]
    Shape(String),
    /// Nothing to stand beside.
    #[error("it has no containers")]
    NoContainers,
    /// KServe makes the pod.
    #[error(
        "its containers come from a ServingRuntime; let `taximeter webhook` add the sidecar to the \
         pods"
    )]
    Runtime,
    /// The gateway runs on Linux.
    #[error("it is for Windows, and the sidecar's image is for Linux")]
    Windows,
    /// The sidecar's ports would be the node's.
    #[error(
        "it has the node's network (`hostNetwork`), in which other pods have these ports too; run \
         the gateway as a pod of its own"
    )]
    HostNetwork,
    /// Somebody else's container has our name.
    #[error(
        "it has a container `taximeter` that was not injected; remove that, or leave it as it is"
    )]
    Foreign,
    /// The port is taken.
    #[error("container `{container}` has port {port} already; choose another with {choose}")]
    PortTaken {
        /// Who has it.
        container: String,
        /// The port.
        port: u16,
        /// Where to choose another.
        choose: &'static str,
    },
    /// None of the ports that are tried is free.
    #[error("ports {0} are all taken; choose another with --listen-port")]
    PortsTaken(String),
    /// The container that was named is not there.
    #[error("it has no container `{wanted}`, only {there}")]
    NoSuchContainer {
        /// As it was named.
        wanted: String,
        /// Those that it has.
        there: String,
    },
    /// Several containers, and none or many look like an engine.
    #[error("which of its containers is the engine ({0})? name it with --container")]
    WhichContainer(String),
    /// No port of the engine is known.
    #[error("which port does container `{0}` listen on? name it with --engine-port")]
    WhichPort(String),
    /// An annotation or label of the pod does not do.
    #[error("{key}: {value:?} {problem}")]
    Told {
        /// The annotation's or label's name.
        key: String,
        /// What it says.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The label that names the tenant is missing.
    #[error("it has no label `{0}`, which names its tenant")]
    NoTenantLabel(String),
    /// Containers ask different hosts.
    #[error(
        "its containers have different values of {0}; choose a container with --container, or what \
         the sidecar asks with --upstream"
    )]
    Different(&'static str),
    /// A base URL that cannot become an upstream.
    #[error("{variable} of container `{container}` {problem}; say what to ask with --upstream")]
    BaseUrl {
        /// The variable.
        variable: &'static str,
        /// Whose it is.
        container: String,
        /// What is wrong with it.
        problem: String,
    },
}
