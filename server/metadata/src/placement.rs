//! Which brokers get the replicas of new partitions.
//!
//! Each replica goes to a broker that has the fewest of this call's so far, on a rack that the partition is not on yet;
//! each partition is led by the one of its brokers that leads the fewest. So counts differ by at most one where racks
//! allow it. Ties are drawn, so that two brokers do not share all their partitions.

use std::collections::BTreeMap;

use model::BrokerId;
use protocol::Text;

use crate::Entropy;

/// A broker that can take replicas.
#[derive(Clone, Debug)]
pub struct UsableBroker {
    pub id: BrokerId,
    pub rack: Option<Text>,
    /// Fenced brokers take replicas when there are too few others, but lead nothing.
    pub fenced: bool,
    /// Whether all its directories are cordoned: it takes nothing new.
    pub cordoned: bool,
}

/// Why replicas cannot be placed; the wording is that of Kafka 4.4.0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    #[error("All brokers are currently fenced, or have all their log directories cordoned.")]
    NoUnfencedBroker,
    #[error(
        "The target replication factor of {wanted} cannot be reached because only {available} broker(s) are \
         registered or some brokers have all their log directories cordoned."
    )]
    TooFewBrokers { wanted: usize, available: usize },
}

/// A broker and what this call gave it.
struct Candidate<'a> {
    broker: &'a UsableBroker,
    replicas: usize,
    leads: usize,
}

/// The replicas of `count` partitions, the preferred leader first.
///
/// # Errors
/// If there are fewer brokers than replicas, or none that could lead.
pub fn place(
    brokers: &[UsableBroker],
    count: usize,
    replication_factor: usize,
    entropy: &mut dyn Entropy,
) -> Result<Vec<Vec<BrokerId>>, PlacementError> {
    let usable = brokers.iter().filter(|broker| !broker.cordoned);
    let mut candidates: Vec<Candidate<'_>> = usable
        .map(|broker| Candidate {
            broker,
            replicas: 0,
            leads: 0,
        })
        .collect();
    if candidates.iter().all(|candidate| candidate.broker.fenced) {
        return Err(PlacementError::NoUnfencedBroker);
    }
    if candidates.len() < replication_factor {
        return Err(PlacementError::TooFewBrokers {
            wanted: replication_factor,
            available: candidates.len(),
        });
    }
    let mut placed = Vec::with_capacity(count);
    for _ in 0..count {
        shuffle(&mut candidates, entropy);
        placed.push(place_one(&mut candidates, replication_factor));
    }
    even_out_leaders(&mut placed, &candidates);
    Ok(placed)
}

/// Hands leadership on within partitions, from brokers that lead two more than one of their followers. Each step makes
/// the sum of squares of the counts smaller, so it ends.
fn even_out_leaders(placed: &mut [Vec<BrokerId>], candidates: &[Candidate<'_>]) {
    let unfenced = candidates.iter().filter(|candidate| !candidate.broker.fenced);
    let mut leads: BTreeMap<BrokerId, usize> = unfenced
        .map(|candidate| (candidate.broker.id, candidate.leads))
        .collect();
    let mut changed = true;
    while changed {
        changed = false;
        for replicas in placed.iter_mut() {
            let Some(current) = replicas.first().and_then(|leader| leads.get(leader)).copied() else {
                continue;
            };
            let others = replicas.iter().enumerate().skip(1);
            let counts = others.filter_map(|(place, id)| Some((*leads.get(id)?, place)));
            let Some((least, place)) = counts.min() else { continue };
            if least + 1 < current {
                *leads.entry(replicas[0]).or_default() -= 1;
                *leads.entry(replicas[place]).or_default() += 1;
                replicas.swap(0, place);
                changed = true;
            }
        }
    }
}

/// One partition's replicas. Among equals the order of `candidates` decides.
fn place_one(candidates: &mut [Candidate<'_>], replication_factor: usize) -> Vec<BrokerId> {
    let mut chosen: Vec<usize> = Vec::with_capacity(replication_factor);
    let mut racks: BTreeMap<Option<&Text>, usize> = BTreeMap::new();
    while chosen.len() < replication_factor {
        let free = (0..candidates.len()).filter(|at| !chosen.contains(at));
        let best = free.min_by_key(|at| {
            let candidate = &candidates[*at];
            let on_rack = racks.get(&candidate.broker.rack.as_ref()).copied().unwrap_or(0);
            (candidate.broker.fenced, on_rack, candidate.replicas)
        });
        let Some(best) = best else { break };
        *racks.entry(candidates[best].broker.rack.as_ref()).or_default() += 1;
        candidates[best].replicas += 1;
        chosen.push(best);
    }
    let leader = chosen.iter().enumerate().min_by_key(|(_, at)| {
        let candidate = &candidates[**at];
        (candidate.broker.fenced, candidate.leads)
    });
    if let Some((place, at)) = leader.map(|(place, at)| (place, *at)) {
        candidates[at].leads += 1;
        chosen[..=place].rotate_right(1);
    }
    chosen.iter().map(|at| candidates[*at].broker.id).collect()
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], entropy: &mut dyn Entropy) {
    for last in (1..items.len()).rev() {
        items.swap(last, entropy.below(last + 1));
    }
}

#[cfg(test)]
mod tests;
