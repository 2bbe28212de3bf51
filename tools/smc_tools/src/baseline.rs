// SPDX-License-Identifier: GPL-2.0

//! What counters were when they were reset: the kernel never sets them back.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smc_netlink::{Fallbacks, Stats};

use crate::output::Outcome;

/// All counters of a network namespace.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Calls, buffers and handshakes.
    pub stats: Stats,
    /// Connections that stayed on TCP.
    pub fallbacks: Fallbacks,
}

/// The counters as numbers in a fixed order, to be stored and compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    numbers: Vec<u64>,
    /// Side, code and count.
    reasons: Vec<(bool, u32, u64)>,
}

/// The file of this user and network namespace.
fn file() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    let namespace = fs::metadata("/proc/self/ns/net").ok()?.ino();
    Some(
        folder
            .join("smc_tools")
            .join(format!("stats-{namespace}.json")),
    )
}

/// Keeps the counters as they are now.
///
/// # Errors
///
/// A sentence for the user.
pub fn save(counters: &Counters) -> Outcome {
    let file = file().ok_or("the counters cannot be kept: set HOME to a folder.")?;
    let complain = |error: std::io::Error| {
        format!(
            "the counters cannot be kept in {}: {error}.",
            file.display()
        )
    };
    let text = serde_json::to_string(&Stored::of(counters)).map_err(|error| format!("{error}."))?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(complain)?;
    }
    fs::write(&file, text).map_err(complain)
}

/// Takes off what was kept. A file that does not fit, for instance after the module was loaded again,
/// counts for nothing.
pub fn subtract(counters: Counters) -> Counters {
    let kept = file()
        .and_then(|file| fs::read_to_string(file).ok())
        .and_then(|text| serde_json::from_str::<Stored>(&text).ok());
    match kept {
        Some(kept) => less(counters, &kept),
        None => counters,
    }
}

fn less(mut counters: Counters, kept: &Stored) -> Counters {
    let now = Stored::of(&counters);
    let fits = now.numbers.len() == kept.numbers.len()
        && now.numbers.iter().zip(&kept.numbers).all(|(n, k)| n >= k);
    if !fits {
        return counters;
    }
    let mut old = kept.numbers.iter().copied();
    counters.each_number(&mut |number| *number -= old.next().unwrap_or(0));
    for entry in &mut counters.fallbacks.reasons {
        let server = entry.side == smc_netlink::FallbackSide::Server;
        let old = kept
            .reasons
            .iter()
            .find(|(side, code, _)| *side == server && *code == entry.reason.0);
        entry.count = entry.count.saturating_sub(old.map_or(0, |old| old.2));
    }
    counters
}

impl Stored {
    fn of(counters: &Counters) -> Self {
        let mut counters = counters.clone();
        let mut numbers = Vec::new();
        counters.each_number(&mut |number| numbers.push(*number));
        let reasons = counters.fallbacks.reasons.iter();
        Self {
            numbers,
            reasons: reasons
                .map(|entry| {
                    let server = entry.side == smc_netlink::FallbackSide::Server;
                    (server, entry.reason.0, entry.count)
                })
                .collect(),
        }
    }
}

impl Counters {
    /// Calls `f` for each counter that only grows, in a fixed order.
    fn each_number(&mut self, f: &mut dyn FnMut(&mut u64)) {
        f(&mut self.stats.client_handshake_errors);
        f(&mut self.stats.server_handshake_errors);
        f(&mut self.fallbacks.server);
        f(&mut self.fallbacks.client);
        for transport in [&mut self.stats.smcr, &mut self.stats.smcd] {
            for number in [
                &mut transport.client_v1,
                &mut transport.client_v2,
                &mut transport.server_v1,
                &mut transport.server_v2,
                &mut transport.sendpage,
                &mut transport.splice,
                &mut transport.cork,
                &mut transport.nodelay,
                &mut transport.urgent,
            ] {
                f(number);
            }
            for direction in [&mut transport.tx, &mut transport.rx] {
                direction.buffer_sizes.iter_mut().for_each(&mut *f);
                direction.call_sizes.iter_mut().for_each(&mut *f);
                let buffers = &mut direction.buffers;
                for number in [
                    &mut buffers.small_peer,
                    &mut buffers.small,
                    &mut buffers.full_peer,
                    &mut buffers.full,
                    &mut buffers.reused,
                    &mut buffers.allocated,
                    &mut buffers.downgraded,
                    &mut direction.bytes,
                    &mut direction.calls,
                ] {
                    f(number);
                }
            }
        }
    }

    /// All counters as JSON.
    ///
    /// # Errors
    ///
    /// A sentence for the user.
    pub fn to_json(&self) -> Result<Value, String> {
        let of = |error: serde_json::Error| format!("{error}.");
        Ok(serde_json::json!({
            "stats": serde_json::to_value(&self.stats).map_err(of)?,
            "fallbacks": serde_json::to_value(&self.fallbacks).map_err(of)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smc_netlink::{Fallback, FallbackSide, Reason};

    fn counters(bytes: u64, fallbacks: u64) -> Counters {
        let mut counters = Counters::default();
        counters.stats.smcr.rx.bytes = bytes;
        counters.stats.smcr.rx.buffer_usage = 77;
        counters.fallbacks.server = fallbacks;
        counters.fallbacks.reasons.push(Fallback {
            side: FallbackSide::Server,
            reason: Reason(0x0301_0000),
            count: fallbacks,
        });
        counters
    }

    #[test]
    fn what_was_there_before_is_taken_off() {
        let kept = Stored::of(&counters(100, 2));
        let text = serde_json::to_string(&kept).expect("it can be written");
        let kept: Stored = serde_json::from_str(&text).expect("it can be read");
        let left = less(counters(150, 5), &kept);
        assert_eq!(left.stats.smcr.rx.bytes, 50);
        // A level is no count.
        assert_eq!(left.stats.smcr.rx.buffer_usage, 77);
        assert_eq!(left.fallbacks.server, 3);
        assert_eq!(left.fallbacks.reasons[0].count, 3);
    }

    #[test]
    fn a_file_from_before_a_reload_counts_for_nothing() {
        let kept = Stored::of(&counters(100, 2));
        assert_eq!(less(counters(50, 2), &kept).stats.smcr.rx.bytes, 50);
    }
}
