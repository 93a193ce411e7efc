//! What a batch manifest must look like (state-schema.md section 5). The rules are checked in the contract's order.

use std::collections::BTreeSet;

use serde_json::Value;

use super::lane::split_reference;
use crate::domain::decision::{Refusal, RefusalKind};
use crate::domain::ids::{BatchId, InvalidName, RepoName, is_segment};
use crate::domain::printable::printable;
use crate::domain::record::{Members, plain, present, texts};

/// Checks a manifest and returns the batch's id: its own, else `flag`.
///
/// # Errors
/// The first rule it breaks.
pub fn check<'a>(manifest: &'a Value, flag: Option<&str>) -> Result<(BatchId, &'a Members), Refusal> {
    let manifest = manifest.as_object().ok_or_else(|| invalid("batch manifest must be a JSON object"))?;
    let batch = batch_id(manifest, flag)?;
    if let Some(repo) = present(manifest, "repo") {
        RepoName::parse("batch", &plain(repo)).map_err(named)?;
    }
    let lanes = manifest.get("lanes").and_then(Value::as_array);
    let lanes = lanes.ok_or_else(|| invalid("batch manifest lanes must be an array"))?;
    if lanes.is_empty() {
        return Err(invalid("batch manifest lanes must not be empty"));
    }
    let mut names = BTreeSet::new();
    for (index, lane) in lanes.iter().enumerate() {
        let name = check_lane(index + 1, lane)?;
        if !names.insert(name) {
            return Err(invalid(format!("batch lane {} is duplicated", printable(name))));
        }
    }
    Ok((batch, manifest))
}

fn batch_id(manifest: &Members, flag: Option<&str>) -> Result<BatchId, Refusal> {
    let own = present(manifest, "batch_id").map(plain).filter(|id| !id.is_empty());
    let flag = flag.filter(|id| !id.is_empty());
    let id = match (own, flag) {
        (Some(own), Some(flag)) if own != flag => {
            return Err(invalid("--batch-id does not match batch manifest batch_id"));
        }
        (Some(own), _) => own,
        (None, Some(flag)) => flag.to_owned(),
        (None, None) => return Err(invalid("batch manifest missing batch_id")),
    };
    BatchId::parse("batch-id", &id).map_err(named)
}

/// Checks one lane and returns its name.
fn check_lane(position: usize, lane: &Value) -> Result<&str, Refusal> {
    let lane = lane.as_object().ok_or_else(|| invalid(format!("batch lane {position} must be a JSON object")))?;
    let name = match shadowing(lane, "name", "id") {
        None | Some(Value::Null) => return Err(invalid(format!("batch lane {position} missing name"))),
        Some(Value::String(name)) if name.is_empty() => {
            return Err(invalid(format!("batch lane {position} missing name")));
        }
        Some(Value::String(name)) => name.as_str(),
        Some(_) => return Err(invalid(format!("batch lane {position} name must be a string"))),
    };
    let shown = printable(name);
    if name.contains(':') {
        return Err(invalid(format!("batch lane {shown} cannot contain ':'")));
    }
    check_owner(&shown, lane)?;
    check_targets(&shown, lane)?;
    let valid = |reference: &String| split_reference(reference).is_some_and(|(batch, _)| is_segment(batch));
    match texts(lane.get("depends_on")).iter().find(|reference| !valid(reference)) {
        Some(bad) => Err(invalid(format!("batch lane {shown} has invalid dependency ref: {}", printable(bad)))),
        None => Ok(name),
    }
}

fn check_owner(lane_name: &str, lane: &Members) -> Result<(), Refusal> {
    match shadowing(lane, "owner", "agent_id") {
        None | Some(Value::Null) => Err(invalid(format!("batch lane {lane_name} missing owner"))),
        Some(Value::String(owner)) if owner.is_empty() => Err(invalid(format!("batch lane {lane_name} missing owner"))),
        Some(Value::String(owner)) if is_segment(owner) => Ok(()),
        Some(Value::String(owner)) => Err(invalid(format!("invalid lane owner: {}", printable(owner)))),
        Some(_) => Err(invalid(format!("batch lane {lane_name} owner must be a string"))),
    }
}

fn check_targets(lane_name: &str, lane: &Members) -> Result<(), Refusal> {
    let targets = texts(present(lane, "targets").or_else(|| lane.get("target")));
    if targets.is_empty() {
        return Err(invalid(format!("batch lane {lane_name} missing targets")));
    }
    match targets.iter().find(|target| !is_segment(target)) {
        Some(bad) => Err(invalid(format!("invalid lane target: {}", printable(bad)))),
        None => Ok(()),
    }
}

/// A key that is present, even with null, hides the older spelling.
fn shadowing<'a>(lane: &'a Members, name: &str, older: &str) -> Option<&'a Value> {
    lane.get(name).or_else(|| lane.get(older))
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Invalid, message)
}

fn named(error: InvalidName) -> Refusal {
    invalid(printable(&error.to_string()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn error_of(manifest: Value, flag: Option<&str>) -> String {
        match check(&manifest, flag) {
            Err(refusal) => {
                assert_eq!(refusal.kind, RefusalKind::Invalid);
                refusal.message
            }
            Ok((batch, _)) => format!("valid {batch}"),
        }
    }

    fn with_lane(lane: Value) -> String {
        error_of(json!({"batch_id": "b1", "lanes": [lane]}), None)
    }

    #[test]
    fn the_top_level_is_checked_in_the_contracts_order() {
        assert_eq!(error_of(json!([]), None), "batch manifest must be a JSON object");
        assert_eq!(error_of(json!({"repo": "x"}), None), "batch manifest missing batch_id");
        assert_eq!(error_of(json!({"batch_id": ""}), Some("")), "batch manifest missing batch_id");
        assert_eq!(
            error_of(json!({"batch_id": "b1"}), Some("b2")),
            "--batch-id does not match batch manifest batch_id"
        );
        assert_eq!(error_of(json!({"batch_id": "b/1"}), None), "invalid batch-id: b/1");
        assert_eq!(error_of(json!({"batch_id": "b1", "repo": "x"}), None), "invalid batch repo: x");
        assert_eq!(error_of(json!({"batch_id": "b1", "repo": "o/r"}), None), "batch manifest lanes must be an array");
        assert_eq!(error_of(json!({"lanes": []}), Some("b1")), "batch manifest lanes must not be empty");
    }

    #[test]
    fn each_lane_is_checked_in_the_contracts_order() {
        for (lane, message) in [
            (json!(1), "batch lane 1 must be a JSON object"),
            (json!({}), "batch lane 1 missing name"),
            (json!({"name": null, "id": "x"}), "batch lane 1 missing name"),
            (json!({"name": 1}), "batch lane 1 name must be a string"),
            (json!({"name": "a:b"}), "batch lane a:b cannot contain ':'"),
            (json!({"name": "a"}), "batch lane a missing owner"),
            (json!({"name": "a", "owner": null, "agent_id": "w"}), "batch lane a missing owner"),
            (json!({"name": "a", "owner": 1}), "batch lane a owner must be a string"),
            (json!({"name": "a", "owner": "w/1"}), "invalid lane owner: w/1"),
            (json!({"name": "a", "owner": "w"}), "batch lane a missing targets"),
            (json!({"name": "a", "owner": "w", "targets": []}), "batch lane a missing targets"),
            (json!({"name": "a", "owner": "w", "targets": ["1", "a b"]}), "invalid lane target: a b"),
            (
                json!({"name": "a", "owner": "w", "targets": 1, "depends_on": "x"}),
                "batch lane a has invalid dependency ref: x",
            ),
            (
                json!({"name": "a", "owner": "w", "targets": 1, "depends_on": ["b:"]}),
                "batch lane a has invalid dependency ref: b:",
            ),
            (json!({"id": "a", "agent_id": "w", "target": "1", "depends_on": ["b2:x"]}), "valid b1"),
        ] {
            assert_eq!(with_lane(lane), message);
        }
    }

    #[test]
    fn two_lanes_of_one_name_are_refused() {
        let lane = json!({"name": "a", "owner": "w", "targets": ["1"]});
        assert_eq!(error_of(json!({"batch_id": 5, "lanes": [lane.clone()]}), Some("5")), "valid 5");
        assert_eq!(
            error_of(json!({"batch_id": "b1", "lanes": [lane.clone(), lane]}), None),
            "batch lane a is duplicated"
        );
    }
}
