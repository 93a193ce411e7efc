//! Registering a batch (cli-contract.md section 5).

use serde_json::Value;

use super::drain::DRAINED;
use super::manifest::check;
use crate::domain::decision::{Decision, Edit, Put, Refusal, Verdict};
use crate::domain::ids::BatchId;
use crate::domain::path::RecordPath;
use crate::domain::record::{Members, present};
use crate::domain::request::Stamp;
use crate::domain::snapshot::{Freshness, Snapshot};
use crate::domain::tenure::members_of;

/// Asks to register a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Register {
    batch_id: BatchId,
    manifest: Members,
    /// What replaces the manifest's `launch_prompt`.
    pub launch_prompt: Option<String>,
    /// `--synthetic`
    pub synthetic: bool,
    /// `--synthetic-kind`
    pub synthetic_kind: Option<String>,
}

impl Register {
    /// Checks a manifest; `flag` is `--batch-id`.
    ///
    /// # Errors
    /// The first rule the manifest breaks.
    pub fn of(manifest: &Value, flag: Option<&str>) -> Result<Self, Refusal> {
        let (batch_id, manifest) = check(manifest, flag)?;
        let manifest = manifest.clone();
        Ok(Self { batch_id, manifest, launch_prompt: None, synthetic: false, synthetic_kind: None })
    }

    /// Returns the batch's id.
    #[must_use]
    pub fn batch_id(&self) -> &BatchId {
        &self.batch_id
    }
}

/// Decides a registration and returns the batch as stored.
///
/// The manifest replaces what was stored, but for when it was first registered, whether it is synthetic, and what is
/// drained: only `drain` begins and ends that (design.md section 4).
///
/// # Errors
/// A refusal when what is stored cannot be read; nothing is written over it.
pub fn register(snapshot: &Snapshot, request: &Register, stamp: &Stamp) -> Verdict<Members> {
    let path = RecordPath::batch(&request.batch_id);
    let stored = snapshot.get(&path)?;
    let prior = stored.map(|stored| members_of(stored, "batch")).transpose()?;
    let batch = compose(request, stamp, prior);
    let put = Put::upsert(path, stored, batch.clone());
    Ok(Decision { edits: vec![Edit::Put(put)], outcome: batch, basis: Freshness::Cached })
}

fn compose(request: &Register, stamp: &Stamp, prior: Option<&Members>) -> Members {
    let now = Value::from(stamp.now.to_string());
    let manifest = &request.manifest;
    let from_prior = |name: &str| prior.and_then(|prior| present(prior, name)).cloned();
    let kept = |name: &str| present(manifest, name).cloned().or_else(|| from_prior(name));
    let mut batch = manifest.clone();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            batch.insert(name.to_owned(), value);
        }
    };
    put("schema_version", Some(1.into()));
    put("batch_id", Some(request.batch_id.as_str().into()));
    put("registered_at", Some(kept("registered_at").unwrap_or_else(|| now.clone())));
    put("updated_at", Some(now));
    put("launch_prompt", request.launch_prompt.clone().map(Value::from));
    put("synthetic", request.synthetic.then_some(Value::Bool(true)).or_else(|| kept("synthetic")));
    put("synthetic_kind", request.synthetic_kind.clone().map(Value::from).or_else(|| kept("synthetic_kind")));
    if prior.is_some() {
        batch.shift_remove(DRAINED);
        if let Some(drained) = from_prior(DRAINED) {
            batch.insert(DRAINED.to_owned(), drained);
        }
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{keys, malformed, put, refusal, snapshot, stamp, stored, when};
    use serde_json::json;

    const PATH: &str = "batches/b1.json";

    fn manifest() -> Value {
        json!({"custom": {"n": 1}, "batch_id": "b1", "lanes": [{"name": "a", "owner": "w", "targets": [1], "x": null}]})
    }

    fn register_over(prior: Value, request: &Register) -> Members {
        register(&snapshot(vec![stored(PATH, prior)], &[]), request, &stamp(60)).unwrap().outcome
    }

    #[test]
    fn a_batch_is_the_manifest_with_its_own_members_verbatim() {
        let mut request = Register::of(&manifest(), None).unwrap();
        request.synthetic = true;
        request.launch_prompt = Some("go\n".to_owned());
        let decision = register(&snapshot(vec![], &[PATH]), &request, &stamp(0)).unwrap();
        let batch = &put(&decision, PATH).members;
        assert_eq!(*batch, decision.outcome);
        let order = [
            "custom",
            "batch_id",
            "lanes",
            "schema_version",
            "registered_at",
            "updated_at",
            "launch_prompt",
            "synthetic",
        ];
        assert_eq!(keys(batch), order);
        assert_eq!(batch["lanes"], manifest()["lanes"]);
        assert_eq!((&batch["registered_at"], &batch["updated_at"]), (&json!(when(0)), &json!(when(0))));
        assert_eq!(batch["launch_prompt"], "go\n");
    }

    #[test]
    fn registering_again_replaces_all_but_when_it_began_and_whether_it_is_real() {
        let request = Register::of(&manifest(), None).unwrap();
        let prior = json!({"registered_at": when(-9), "synthetic": true, "synthetic_kind": "smoke", "status": "completed",
                           "objective": "x", "lanes": [{"name": "a", "terminal": "done"}]});
        let batch = register_over(prior, &request);
        assert_eq!((&batch["registered_at"], &batch["updated_at"]), (&json!(when(-9)), &json!(when(60))));
        assert_eq!((&batch["synthetic"], &batch["synthetic_kind"]), (&json!(true), &json!("smoke")));
        assert!(!batch.contains_key("status") && !batch.contains_key("objective"));
        assert_eq!(batch["lanes"][0].get("terminal"), None);
    }

    #[test]
    fn a_drain_survives_and_a_manifest_cannot_bring_a_cancelled_one_back() {
        let drained = json!([{"reason": "stop", "at": when(0)}]);
        let request = Register::of(&manifest(), None).unwrap();
        assert_eq!(register_over(json!({"drained": drained}), &request)["drained"], drained);
        let mut with_drain = manifest();
        with_drain["drained"] = drained;
        let request = Register::of(&with_drain, None).unwrap();
        assert!(!register_over(json!({}), &request).contains_key("drained"));
    }

    #[test]
    fn nothing_is_written_over_a_record_that_cannot_be_read() {
        let request = Register::of(&manifest(), None).unwrap();
        let verdict = register(&snapshot(vec![malformed(PATH)], &[]), &request, &stamp(0));
        assert!(refusal(verdict).message.starts_with("state unreadable: batches/b1.json"));
    }
}
