//! Whom a quantity is about.

/// One part of an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// The address that another scraper took the sample from.
    Instance,
    /// The node.
    Node,
    /// The GPU: its UUID, or its serial number.
    Gpu,
    /// The model of the GPU.
    GpuModel,
    /// Its place on the bus.
    Pci,
    /// The part of the GPU: a MIG instance or a partition.
    Part,
    /// The kind of that part.
    Profile,
    /// The namespace of the pod.
    Namespace,
    /// The pod.
    Pod,
    /// The container.
    Container,
    /// The model that is served.
    Model,
    /// The engine of a server that has several.
    Engine,
    /// The rank in a data-parallel engine.
    Rank,
}

impl Field {
    /// The attribute's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Node => "host.name",
            Self::Gpu => "hw.id",
            Self::GpuModel => "hw.model",
            Self::Pci => "hw.pci",
            Self::Part => "hw.gpu.part",
            Self::Profile => "hw.gpu.part.profile",
            Self::Namespace => "k8s.namespace.name",
            Self::Pod => "k8s.pod.name",
            Self::Container => "k8s.container.name",
            Self::Model => "gen_ai.request.model",
            Self::Engine => "engine",
            Self::Rank => "engine.rank",
        }
    }
}

/// Whom a quantity is about: what is known of it, and no field twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Identity {
    fields: Vec<(Field, String)>,
}

impl Identity {
    pub(crate) const NOBODY: Self = Self { fields: Vec::new() };

    /// The value of a field.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<&str> {
        self.fields.iter().find(|(is, _)| *is == field).map(|(_, value)| value.as_str())
    }

    /// All fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Field, &str)> {
        self.fields.iter().map(|(field, value)| (*field, value.as_str()))
    }

    /// Adds a field that is not there yet.
    pub(crate) fn set(&mut self, field: Field, value: &str) {
        let value = normal(field, value);
        if value.is_empty() || self.get(field).is_some() {
            return;
        }
        let at = self.fields.partition_point(|(is, _)| *is < field);
        self.fields.insert(at, (field, value));
    }

    /// Its fields among `among`.
    pub(crate) fn part(&self, among: &[Field]) -> Self {
        let fields = self.fields.iter().filter(|(field, _)| among.contains(field));
        Self { fields: fields.cloned().collect() }
    }

    /// Whether all that is known of this one is the same of `other`.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.fields.iter().all(|(field, value)| other.get(*field) == Some(value))
    }
}

/// The one spelling of what programs spell in several ways.
fn normal(field: Field, value: &str) -> String {
    match field {
        // Plugins that share a GPU add a number of their own.
        Field::Gpu => value.split("::").next().unwrap_or(value).to_owned(),
        Field::Pci => pci(value),
        _ => value.to_owned(),
    }
}

/// A PCI address in lower case, its domain with four digits.
fn pci(value: &str) -> String {
    let value = value.to_ascii_lowercase();
    match value.split_once(':') {
        Some((domain, rest)) if domain.len() == 8 && domain.starts_with("0000") => {
            format!("{}:{rest}", domain.get(4..).unwrap_or(domain))
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_device_is_spelled_in_one_way() {
        let mut identity = Identity::default();
        identity.set(Field::Pci, "00000000:3B:00.0");
        identity.set(Field::Gpu, "GPU-11111111-2222::5");
        identity.set(Field::Gpu, "the second is not taken");
        identity.set(Field::Pod, "");
        let fields: Vec<_> = identity.iter().collect();
        assert_eq!(fields, [(Field::Gpu, "GPU-11111111-2222"), (Field::Pci, "0000:3b:00.0")]);
        assert_eq!(pci("0001:3B:00.0"), "0001:3b:00.0");
        assert_eq!(pci("00010000:3B:00.0"), "00010000:3b:00.0");
    }
}
