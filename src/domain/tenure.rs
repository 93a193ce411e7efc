//! Who holds a claim, and whether somebody who acts for an earlier tenure has lost it (design.md section 4).

use serde_json::Value;

use super::decision::{Refusal, RefusalKind};
use super::printable::printable;
use super::record::{Content, Members, Stored, text};
use super::request::{Metadata, Tenure};

/// Returns the members of a record that a decision rests on.
///
/// # Errors
/// A record that is not an object is UNKNOWN: it is neither free nor held, and nothing is written over it.
pub fn members_of<'a>(stored: &'a Stored, kind: &str) -> Result<&'a Members, Refusal> {
    let path = &stored.path;
    let message = match &stored.content {
        Content::Object(members) => return Ok(members),
        Content::NotAnObject(_) => format!("state record is not a {kind} object: {path}"),
        Content::Malformed(reason) => format!("state unreadable: {path}: {}", printable(reason)),
    };
    Err(Refusal::new(RefusalKind::Unknown, message))
}

/// The tenure that a claim record speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The recorded holder; absent or blank = nobody can tell.
    pub agent: Option<String>,
    /// The holder's instance, when it named one.
    pub instance: Option<String>,
    /// The claim's generation; 0 = it has none.
    pub generation: i64,
    /// `claimed_at` as stored; renewals keep it.
    pub since: Option<String>,
    /// Whether the claim's status is `active`; released and everything else is free.
    pub active: bool,
}

impl Holding {
    /// Reads a claim record.
    ///
    /// # Errors
    /// When the record is not an object, or its generation is a number no later one could exceed.
    pub fn of(stored: &Stored) -> Result<Self, Refusal> {
        let claim = members_of(stored, "claim")?;
        let filled = |name: &str| text(claim, name).filter(|value| !value.trim().is_empty()).map(str::to_owned);
        // A holder that is no text is somebody all the same: nobody may act in its name.
        let odd = claim.get("agent_id").filter(|value| !value.is_string() && !value.is_null()).map(Value::to_string);
        Ok(Self {
            agent: filled("agent_id").or(odd),
            instance: filled("instance_id"),
            generation: generation_of(stored, claim)?,
            since: text(claim, "claimed_at").map(str::to_owned),
            active: text(claim, "status") == Some("active"),
        })
    }

    /// Tells whether `agent` is the recorded holder.
    #[must_use]
    pub fn is_of(&self, agent: &str) -> bool {
        self.agent.as_deref() == Some(agent)
    }

    /// Tells whether this is the very tenure that a worktree remembers.
    #[must_use]
    pub fn is_tenure(&self, tenure: &Tenure) -> bool {
        self.is_of(&tenure.agent) && self.instance == tenure.instance && self.generation == tenure.generation
    }

    /// Names the holder in a message: `w1`, or `UNKNOWN` when the record names none.
    #[must_use]
    pub fn holder(&self) -> String {
        self.agent.as_deref().map_or_else(|| "UNKNOWN".to_owned(), |agent| printable(agent).into_owned())
    }

    /// Names the holder and its instance in a message: `w1 instance i2`, `w1 without an instance`.
    #[must_use]
    pub fn holder_and_instance(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{} instance {}", self.holder(), printable(instance)),
            None => format!("{} without an instance", self.holder()),
        }
    }

    fn since(&self) -> String {
        self.since.as_deref().map_or_else(|| "UNKNOWN".to_owned(), |since| printable(since.trim()).into_owned())
    }
}

/// A number that the store could not count on from is refused; what is no number at all counts as none.
fn generation_of(stored: &Stored, claim: &Members) -> Result<i64, Refusal> {
    match super::record::integer(claim, "generation") {
        Some(generation) if generation < i64::MAX => Ok(generation.max(0)),
        None if !claim.get("generation").is_some_and(serde_json::Value::is_number) => Ok(0),
        _ => Err(Refusal::new(RefusalKind::Unknown, format!("generation of {} is out of range", stored.path))),
    }
}

/// Who acts, as far as it was said or remembered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Actor<'a> {
    /// The agent, when one is named.
    pub agent: Option<&'a str>,
    /// Its instance.
    pub instance: Option<&'a str>,
    /// The generation it acts for.
    pub generation: Option<i64>,
}

impl<'a> Actor<'a> {
    /// Returns the actor that flags and tenure speak of; the metadata already hold what the tenure adds.
    #[must_use]
    pub fn of(agent: Option<&'a str>, metadata: &'a Metadata) -> Self {
        let instance = metadata.instance_id.as_deref().filter(|instance| !instance.trim().is_empty());
        Self { agent, instance, generation: metadata.generation }
    }

    /// Tells whether the actor says more than its agent id, so that a claim can contradict it.
    #[must_use]
    pub fn acts_for_a_tenure(&self) -> bool {
        self.instance.is_some() || self.generation.is_some()
    }
}

/// A tenure that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// `CLAIM_LOST: R#T generation G is held by B since T`
    pub message: String,
    /// The successor is the same agent, so that both share one heartbeat row.
    pub to_own_successor: bool,
}

/// Returns what an actor has lost according to the claim as it stands; nothing when it may still hold the claim, or
/// when it never said that it did.
#[must_use]
pub fn loss(item: &str, holding: &Holding, actor: &Actor<'_>) -> Option<Loss> {
    let same_agent = actor.agent.is_none_or(|agent| holding.is_of(agent));
    let outnumbered = actor.generation.is_some_and(|ours| ours < holding.generation);
    let displaced = holding.active && !same_agent && actor.generation.is_some();
    let replaced = holding.active && same_agent && instances_differ(actor.instance, holding.instance.as_deref());
    (outnumbered || displaced || replaced).then(|| Loss {
        message: lost_message(item, holding, actor.agent),
        to_own_successor: holding.active && actor.agent.is_some_and(|agent| holding.is_of(agent)),
    })
}

/// Words the loss of a claim that is `holding` now.
#[must_use]
pub fn lost_message(item: &str, holding: &Holding, agent: Option<&str>) -> String {
    let own_successor = agent.is_some_and(|agent| holding.is_of(agent)) && holding.instance.is_some();
    let holder = if own_successor { holding.holder_and_instance() } else { holding.holder() };
    let (generation, since) = (holding.generation, holding.since());
    if holding.active {
        format!("CLAIM_LOST: {item} generation {generation} is held by {holder} since {since}")
    } else {
        format!("CLAIM_LOST: {item} generation {generation} was held by {holder} since {since} and is released")
    }
}

fn instances_differ(one: Option<&str>, other: Option<&str>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{malformed, stored, when};
    use serde_json::{Value, json};

    const PATH: &str = "claims/o/r/42.json";

    fn holding(value: Value) -> Holding {
        Holding::of(&stored(PATH, value)).unwrap()
    }

    fn held_by_b() -> Holding {
        holding(json!({"status": "active", "agent_id": "b", "generation": 3, "claimed_at": when(7)}))
    }

    fn actor(agent: &str, instance: Option<&'static str>, generation: Option<i64>) -> Option<Loss> {
        loss("o/r#42", &held_by_b(), &Actor { agent: Some(agent), instance, generation })
    }

    #[test]
    fn what_is_not_an_object_is_unknown_and_names_its_path() {
        for bad in [stored(PATH, json!([])), malformed(PATH)] {
            let refusal = Holding::of(&bad).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::Unknown);
            assert!(refusal.message.contains(PATH), "{refusal}");
        }
    }

    #[test]
    fn a_generation_nobody_could_exceed_is_unknown_and_text_that_is_none_counts_as_zero() {
        for bad in ["9223372036854775807", "99999999999999999999", "1.5"] {
            let value: Value = serde_json::from_str(&format!("{{\"generation\": {bad}}}")).unwrap();
            assert_eq!(Holding::of(&stored(PATH, value)).unwrap_err().kind, RefusalKind::Unknown, "{bad}");
        }
        assert_eq!(holding(json!({"generation": "4"})).generation, 4);
        assert_eq!(holding(json!({"generation": "x"})).generation, 0);
        assert_eq!(holding(json!({"generation": -4})).generation, 0);
    }

    #[test]
    fn a_tenure_is_lost_to_another_agent_and_to_a_higher_generation() {
        let told = actor("a", None, Some(2)).unwrap();
        assert_eq!(told.message, "CLAIM_LOST: o/r#42 generation 3 is held by b since 2026-12-01T00:00:07Z");
        assert!(!told.to_own_successor);
        assert!(actor("b", None, Some(2)).unwrap().to_own_successor);
    }

    #[test]
    fn who_never_said_it_held_the_claim_has_lost_nothing() {
        assert_eq!(actor("a", None, None), None);
        assert_eq!(actor("a", Some("i1"), None), None);
        assert_eq!(actor("b", Some("i1"), Some(3)), None, "the claim names no instance");
    }

    #[test]
    fn another_instance_of_the_holder_has_lost_it_to_the_recorded_one() {
        let holding = holding(json!({"status": "active", "agent_id": "b", "instance_id": "i2", "claimed_at": when(0)}));
        let old = Actor { agent: Some("b"), instance: Some("i1"), generation: None };
        let told = loss("o/r#42", &holding, &old).unwrap();
        assert!(told.to_own_successor);
        assert!(told.message.contains("is held by b instance i2 since"), "{}", told.message);
    }

    #[test]
    fn a_released_claim_of_a_higher_generation_was_lost_too() {
        let released = holding(json!({"status": "released", "agent_id": "b", "generation": 3, "claimed_at": when(0)}));
        let old = Actor { agent: Some("a"), instance: None, generation: Some(2) };
        assert!(loss("o/r#42", &released, &old).unwrap().message.ends_with("and is released"));
        let own = Actor { agent: Some("a"), instance: None, generation: Some(3) };
        assert_eq!(loss("o/r#42", &released, &own), None, "nobody acquired it since");
    }
}
