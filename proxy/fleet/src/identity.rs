//! Whom a quantity is about.

use std::borrow::Cow;

/// One part of an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// The address that another scraper took the sample from.
    Instance,
    /// The node.
    Node,
    /// The GPU: its UUID or its serial number, or its place on the bus where neither is told.
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

    /// Whether it is about a part of a GPU.
    pub(crate) fn is_part(&self) -> bool {
        self.get(Field::Part).is_some_and(|part| match self.get(Field::Profile) {
            // AMD numbers the one part of a whole GPU too.
            Some(profile) => !profile.eq_ignore_ascii_case("spx"),
            None => part != "0",
        })
    }

    /// What the device is called among all: a GPU by its id, and a part whose number others have too with
    /// its GPU before it. `None` of whom is no device.
    #[must_use]
    pub fn device(&self) -> Option<Cow<'_, str>> {
        let gpu = self.get(Field::Gpu).or_else(|| self.get(Field::Pci));
        match (gpu, self.get(Field::Part).filter(|_| self.is_part())) {
            (Some(gpu), Some(part)) if !part.starts_with("MIG-") => {
                Some(format!("{gpu}/{part}").into())
            }
            (gpu, part) => part.or(gpu).map(Cow::Borrowed),
        }
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

    /// A GPU of which no id is told has its place on the bus for one.
    pub(crate) fn identify(&mut self) {
        if let Some(place) = self.get(Field::Pci).map(str::to_owned) {
            self.set(Field::Gpu, &place);
        }
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

/// Longest number of a GPU among those of its host, in bytes.
const NUMBER_BYTES_MAX: usize = 3;

/// The fields that a device of one of these hosts may have which is called so by [`Identity::device`].
/// Without a host it may be of any.
#[must_use]
pub fn fields_of_device(device: &str, hosts: &[&str]) -> Vec<Vec<(Field, String)>> {
    let gpu = device.rsplit_once('/').map_or(device, |(gpu, _)| gpu);
    let named: Vec<_> = match device.rsplit_once('/') {
        Some((gpu, part)) => {
            vec![vec![(Field::Gpu, gpu.to_owned()), (Field::Part, part.to_owned())]]
        }
        None => [Field::Gpu, Field::Part].map(|field| vec![(field, device.to_owned())]).into(),
    };
    // Devices of other hosts have the same number, or the same place on their bus.
    let is_number = gpu.len() <= NUMBER_BYTES_MAX && gpu.bytes().all(|byte| byte.is_ascii_digit());
    if !(is_number || is_pci(gpu)) || hosts.is_empty() {
        return named;
    }
    let on = |host: &&str| {
        let host = (Field::Node, (*host).to_owned());
        named.iter().map(move |fields| [fields, std::slice::from_ref(&host)].concat())
    };
    hosts.iter().flat_map(on).collect()
}

/// Whether an id is a PCI address, such as `0000:3b:00.0`.
pub(crate) fn is_pci(id: &str) -> bool {
    let Some((bus, function)) = id.rsplit_once('.') else { return false };
    let is_hex = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex(function) && bus.split(':').count() == 3 && bus.split(':').all(is_hex)
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
    fn a_device_is_called_so_that_no_other_is_called_the_same() {
        let device = |fields: &[(Field, &str)]| {
            let mut identity = Identity::default();
            fields.iter().for_each(|(field, value)| identity.set(*field, value));
            identity.device().map(Cow::into_owned)
        };
        let (gpu, other) = ((Field::Gpu, "GPU-1"), (Field::Gpu, "GPU-2"));
        let part = [(Field::Part, "2"), (Field::Profile, "3g.40gb")];
        let (one, two) = ([&[gpu], &part[..]].concat(), [&[other], &part[..]].concat());
        assert_eq!(device(&one).as_deref(), Some("GPU-1/2"));
        assert_eq!(device(&two).as_deref(), Some("GPU-2/2"));
        // AMD's whole GPUs have a part each.
        let whole = [(Field::Gpu, "SN-0"), (Field::Part, "0"), (Field::Profile, "SPX")];
        assert_eq!(device(&whole).as_deref(), Some("SN-0"));
        assert_eq!(device(&whole[..2]).as_deref(), Some("SN-0"));
        assert_eq!(device(&[gpu, (Field::Part, "MIG-7")]).as_deref(), Some("MIG-7"));
        assert_eq!(device(&[(Field::Pci, "0000:3B:00.0")]).as_deref(), Some("0000:3b:00.0"));
        assert_eq!(device(&[(Field::Pod, "p")]), None);
    }

    #[test]
    fn a_device_is_found_by_what_it_is_called() {
        for of in [
            vec![(Field::Gpu, "GPU-1")],
            vec![(Field::Gpu, "GPU-1"), (Field::Part, "2")],
            vec![(Field::Part, "MIG-7")],
        ] {
            let mut identity = Identity::default();
            of.iter().for_each(|(field, value)| identity.set(*field, value));
            let name = identity.device().unwrap();
            let of: Vec<_> =
                of.iter().map(|(field, value)| (*field, (*value).to_owned())).collect();
            assert!(fields_of_device(&name, &["n1"]).contains(&of), "{name}");
        }
        let place = |host: &str| {
            [(Field::Gpu, "0000:3b:00.0".to_owned()), (Field::Node, host.to_owned())].to_vec()
        };
        let of = fields_of_device("0000:3b:00.0", &["n1", "n2"]);
        assert!(of.contains(&place("n1")) && of.contains(&place("n2")), "{of:?}");
        assert!(fields_of_device("7", &["n1"]).iter().all(|of| of.contains(&place("n1")[1])));
        let of = fields_of_device("0000:3b:00.0", &[]);
        assert!(of.contains(&place("n1")[..1].to_vec()), "{of:?}");
        let of = fields_of_device("0000:3b:00.0/2", &["n1"]);
        assert!(of[0].iter().any(|(field, value)| (*field, &**value) == (Field::Part, "2")));
        assert!(of.iter().all(|fields| fields.contains(&place("n1")[1])), "{of:?}");
    }

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
