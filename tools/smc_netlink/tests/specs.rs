// SPDX-License-Identifier: GPL-2.0

//! The specifications in `Documentation/netlink/specs`, which are in the kernel's YAML form, say the
//! same as the table that the module and the programs use.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use smc_proto::genl::{self, Named, Set, Type};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Spec {
    name: String,
    #[serde(default)]
    definitions: Vec<Definition>,
    attribute_sets: Vec<AttributeSet>,
    operations: Operations,
    mcast_groups: Option<Groups>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Definition {
    name: String,
    #[serde(default)]
    value_start: u8,
    entries: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct AttributeSet {
    name: String,
    name_prefix: String,
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Attribute {
    name: String,
    value: u16,
    #[serde(rename = "type")]
    kind: String,
    nested_attributes: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Operations {
    name_prefix: String,
    list: Vec<Operation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Operation {
    name: String,
    value: u8,
    attribute_set: String,
    #[serde(rename = "do")]
    call: Option<Side>,
    dump: Option<Side>,
    event: Option<Attributes>,
}

#[derive(Deserialize)]
struct Side {
    request: Option<Attributes>,
    reply: Option<Attributes>,
}

#[derive(Deserialize)]
struct Attributes {
    attributes: Vec<String>,
}

#[derive(Deserialize)]
struct Groups {
    list: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
}

fn read(file: &str) -> Spec {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Documentation/netlink/specs");
    let text = std::fs::read_to_string(folder.join(file)).expect("the specification is there");
    serde_norway::from_str(&text).expect("the specification has the kernel's form")
}

/// How the specifications write a name of C.
fn kebab(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

fn type_name(kind: Type) -> &'static str {
    match kind {
        Type::Pad => "pad",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::Uint => "uint",
        Type::String => "string",
        Type::Binary => "binary",
        Type::Nest(_) => "nest",
    }
}

/// Names and numbers of a list in the form of the table.
fn named(list: &[Named]) -> Vec<(String, u8)> {
    let names = list.iter();
    names.map(|item| (kebab(item.name), item.number)).collect()
}

fn compare_set(spec: &AttributeSet, set: &Set, prefixes: &BTreeMap<&str, &str>) {
    let sizes = set.prefix == genl::smc::pload::SET.prefix;
    let wanted: Vec<_> = set
        .attributes
        .iter()
        .map(|attribute| {
            // A name in Rust cannot begin with a digit.
            let name = attribute.name;
            let name = if sizes {
                name.trim_start_matches("SIZE_")
            } else {
                name
            };
            let inner = match attribute.kind {
                Type::Nest(inner) => Some(kebab(inner.prefix)),
                _ => None,
            };
            let kind = type_name(attribute.kind).to_owned();
            (kebab(name), attribute.number, kind, inner)
        })
        .collect();
    let found: Vec<_> = spec
        .attributes
        .iter()
        .map(|attribute| {
            let inner = attribute.nested_attributes.as_deref();
            let inner = inner.map(|inner| {
                let prefix = prefixes.get(inner);
                (*prefix.unwrap_or_else(|| panic!("there is no set {inner}"))).to_owned()
            });
            let kind = attribute.kind.clone();
            (attribute.name.clone(), attribute.value, kind, inner)
        })
        .collect();
    assert_eq!(found, wanted, "set {}", spec.name);
}

/// Whatever an operation names must be in its set.
fn check_operations(spec: &Spec) {
    for operation in &spec.operations.list {
        let mut sets = spec.attribute_sets.iter();
        let set = sets
            .find(|set| set.name == operation.attribute_set)
            .unwrap_or_else(|| panic!("{} has a set that is not there", operation.name));
        let sides = [&operation.call, &operation.dump].into_iter().flatten();
        let lists = sides
            .flat_map(|side| [&side.request, &side.reply])
            .flatten()
            .chain(&operation.event);
        for name in lists.flat_map(|list| &list.attributes) {
            let known = set
                .attributes
                .iter()
                .any(|attribute| attribute.name == *name);
            assert!(known, "{} of {}", name, operation.name);
        }
        assert!(
            operation.call.is_some() || operation.dump.is_some() || operation.event.is_some(),
            "{} does nothing",
            operation.name
        );
    }
}

fn compare(file: &str, family: &genl::Family) -> Spec {
    let spec = read(file);
    assert_eq!(spec.name, family.name);
    assert_eq!(spec.operations.name_prefix, kebab(family.prefix));
    let operations = spec.operations.list.iter();
    let mut operations: Vec<_> = operations
        .map(|operation| (operation.name.clone(), operation.value))
        .collect();
    operations.sort_by_key(|operation| operation.1);
    assert_eq!(operations, named(family.commands));
    let sets = &spec.attribute_sets;
    assert_eq!(sets.len(), family.sets.len());
    let prefixes = sets
        .iter()
        .map(|set| (&*set.name, &*set.name_prefix))
        .collect();
    for (found, wanted) in sets.iter().zip(family.sets) {
        assert_eq!(found.name_prefix, kebab(wanted.prefix));
        compare_set(found, wanted, &prefixes);
    }
    check_operations(&spec);
    spec
}

fn compare_values(spec: &Spec, name: &str, wanted: &[Named]) {
    let mut definitions = spec.definitions.iter();
    let found = definitions
        .find(|definition| definition.name == name)
        .unwrap_or_else(|| panic!("there is no definition of {name}"));
    let entries: Vec<_> = found
        .entries
        .iter()
        .cloned()
        .zip(found.value_start..)
        .collect();
    assert_eq!(entries, named(wanted), "{name}");
}

#[test]
fn what_there_is() {
    let spec = compare("smc.yaml", &genl::smc::FAMILY);
    compare_values(&spec, "lgr-type", genl::smc::lgr_type::ALL);
    compare_values(&spec, "link-state", genl::smc::link_state::ALL);
}

#[test]
fn networks() {
    compare("smc_pnetid.yaml", &genl::pnet::FAMILY);
}

#[test]
fn events() {
    let spec = compare("smc_rs.yaml", &genl::event::FAMILY);
    compare_values(&spec, "event-kind", genl::event::kind::ALL);
    let groups = spec.mcast_groups.expect("there is a group of listeners");
    let names: Vec<&str> = groups.list.iter().map(|group| &*group.name).collect();
    assert_eq!(names, [genl::event::GROUP]);
}
