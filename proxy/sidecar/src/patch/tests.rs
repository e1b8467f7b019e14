use proptest::prelude::*;
use serde_json::json;

use super::*;

/// As RFC 6902 says, for what we make.
fn apply(value: &mut Value, operation: &Operation) {
    let (path, new) = match operation {
        Operation::Add { path, value } | Operation::Replace { path, value } => (path, Some(value)),
        Operation::Remove { path } => (path, None),
    };
    let Some((last, way)) = path.0.split_last() else {
        *value = new.expect("the root is never removed").clone();
        return;
    };
    let parent = value.pointer_mut(&Pointer(way.to_vec()).to_string()).expect("a parent");
    let is_add = matches!(operation, Operation::Add { .. });
    match (parent, last) {
        (Value::Object(members), Step::Key(key)) => {
            assert_eq!(members.contains_key(key), !is_add, "{path}");
            match new {
                Some(new) => drop(members.insert(key.clone(), new.clone())),
                None => drop(members.remove(key)),
            }
        }
        (Value::Array(elements), Step::Index(index)) => match new {
            Some(new) if is_add => elements.insert(*index, new.clone()),
            Some(new) => elements[*index] = new.clone(),
            None => drop(elements.remove(*index)),
        },
        (parent, step) => panic!("{step:?} of {parent}"),
    }
}

fn text(before: &Value, after: &Value) -> String {
    serde_json::to_string(&between(before, after)).unwrap()
}

#[test]
fn what_comes_first_or_last_in_a_list_is_one_change() {
    let before = json!({"list": [{"name": "a"}, {"name": "b"}]});
    let first = json!({"list": [{"name": "new"}, {"name": "a"}, {"name": "b"}]});
    assert_eq!(text(&before, &first), r#"[{"op":"add","path":"/list/0","value":{"name":"new"}}]"#);
    assert_eq!(text(&first, &before), r#"[{"op":"remove","path":"/list/0"}]"#);
    let changed = json!({"list": [{"name": "a", "x": 1}, {"name": "b"}, {"name": "c"}]});
    assert_eq!(
        text(&before, &changed),
        r#"[{"op":"add","path":"/list/0/x","value":1},{"op":"add","path":"/list/2","value":{"name":"c"}}]"#
    );
}

#[test]
fn a_list_that_is_missing_is_created_and_names_are_escaped() {
    let before = json!({"metadata": {}});
    let after = json!({"metadata": {"annotations": {}}, "list": [1]});
    assert_eq!(
        text(&before, &after),
        r#"[{"op":"add","path":"/list","value":[1]},{"op":"add","path":"/metadata/annotations","value":{}}]"#
    );
    let after = json!({"metadata": {"a/b~c": 1}});
    assert_eq!(text(&before, &after), r#"[{"op":"add","path":"/metadata/a~1b~0c","value":1}]"#);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_u8).prop_map(Value::from),
        "[ab/~]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab/~]{1,2}|name", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_patch_makes_the_one_value_of_the_other(before in value(), after in value()) {
        let mut patched = before.clone();
        for operation in between(&before, &after) {
            apply(&mut patched, &operation);
        }
        prop_assert_eq!(patched, after);
    }
}
