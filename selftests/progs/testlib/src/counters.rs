// SPDX-License-Identifier: GPL-2.0

//! The text of `/proc/net/smc_rs`.
//!
//! The file shows one network namespace: `key value` lines, `fallback REASON SIDE COUNT # WORDS`
//! lines, and one `conn` and `lgr` line for each connection and link group. Lines that are not
//! known are passed over, so that a newer module can be read.

use std::collections::BTreeMap;
use std::io;

/// Where the module shows its statistics.
pub const PATH: &str = "/proc/net/smc_rs";

/// The same for the namespace of the calling thread: the other one names that of the process.
const OF_THREAD: &str = "/proc/thread-self/net/smc_rs";

/// One reading of the statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    values: BTreeMap<String, u64>,
    /// How often each reason made a connection fall back to TCP.
    pub fallbacks: Vec<Fallback>,
    /// The connections at the time of reading.
    pub connections: Vec<Fields>,
    /// The link groups at the time of reading.
    pub groups: Vec<Fields>,
}

/// A count of connections that fell back for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The reason code, as the file writes it.
    pub reason: String,
    /// `client` or `server`.
    pub side: String,
    /// Number of connections.
    pub count: u64,
    /// The reason in words; empty when the file does not have them.
    pub words: String,
}

impl Fallback {
    /// The reason for a person: code, words and side.
    pub fn describe(&self) -> String {
        let Fallback {
            reason,
            side,
            words,
            ..
        } = self;
        if words.is_empty() {
            format!("{reason} on the {side}")
        } else {
            format!("{reason} on the {side}: {words}")
        }
    }
}

/// The `key=value` fields of one line; the words before them are in `""`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(BTreeMap<String, String>);

impl Fields {
    fn parse(words: &[&str]) -> Self {
        let pairs = words.iter().map(|word| {
            let (key, value) = word.split_once('=').unwrap_or(("", word));
            (key.to_owned(), value.to_owned())
        });
        Fields(pairs.collect())
    }

    /// The value of a field, or nothing.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}

impl Counters {
    /// Reads the text of the file.
    pub fn parse(text: &str) -> Self {
        let mut counters = Counters::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["conn", ref fields @ ..] => counters.connections.push(Fields::parse(fields)),
                ["lgr", ref fields @ ..] => counters.groups.push(Fields::parse(fields)),
                ["fallback", reason, side, count, ..] => {
                    if let Ok(count) = count.parse() {
                        counters.fallbacks.push(Fallback {
                            reason: reason.to_owned(),
                            side: side.to_owned(),
                            count,
                            words: line
                                .split_once('#')
                                .map_or("", |(_, words)| words.trim())
                                .to_owned(),
                        });
                    }
                }
                [key, value] => {
                    if let Ok(value) = value.parse() {
                        counters.values.insert(key.to_owned(), value);
                    }
                }
                _ => {}
            }
        }
        counters
    }

    /// Reads the statistics of the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// A sentence for the user when the file cannot be read.
    pub fn read() -> io::Result<Self> {
        let text = std::fs::read_to_string(OF_THREAD).map_err(|error| {
            let sentence = format!("{PATH} cannot be read ({error}): load the module smc_rs.");
            io::Error::new(error.kind(), sentence)
        })?;
        Ok(Counters::parse(&text))
    }

    /// A counter's value; a counter that is not shown is 0.
    pub fn value(&self, key: &str) -> u64 {
        self.values.get(key).copied().unwrap_or(0)
    }

    /// Connections that fell back for `reason` on `side`.
    pub fn fallbacks_for(&self, reason: &str, side: &str) -> u64 {
        let mut entries = self.fallbacks.iter();
        let found = entries.find(|entry| entry.reason == reason && entry.side == side);
        found.map_or(0, |entry| entry.count)
    }

    /// Whether the text was that of the module at all.
    pub fn is_module(&self) -> bool {
        self.values.contains_key("smc_rs")
    }

    /// How much a counter grew since `before`; 0 when it did not grow.
    pub fn growth(&self, before: &Counters, key: &str) -> u64 {
        self.value(key).saturating_sub(before.value(key))
    }

    /// The fallbacks that happened since `before`, one for each reason and side.
    pub fn new_fallbacks(&self, before: &Counters) -> Vec<Fallback> {
        self.fallbacks
            .iter()
            .map(|now| Fallback {
                count: now
                    .count
                    .saturating_sub(before.fallbacks_for(&now.reason, &now.side)),
                ..now.clone()
            })
            .filter(|fallback| fallback.count > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "smc_rs 1\n\
        connections_active 1\n\
        connections_smcr 12\n\
        fallback_total 3\n\
        fallback 0x03010000 client 2\n\
        fallback 0x05000000 server 1 # the peer declined\n\
        something new and unknown\n\
        memory_bytes 131072\n\
        conn local=10.9.0.2:41234 peer=10.9.0.1:6379 mode=SMCR state=ACTIVE lgr=00000100\n\
        lgr 00000100 role=CLNT conns=1 dev=rxe0\n";

    #[test]
    fn all_kinds_of_lines_are_read() {
        let counters = Counters::parse(TEXT);
        assert!(counters.is_module());
        assert_eq!(counters.value("connections_smcr"), 12);
        assert_eq!(counters.value("memory_bytes"), 131_072);
        assert_eq!(counters.value("no_such_counter"), 0);
        assert_eq!(counters.fallbacks.len(), 2);
        assert_eq!(counters.fallbacks[0].describe(), "0x03010000 on the client");
        let words = "0x05000000 on the server: the peer declined";
        assert_eq!(counters.fallbacks[1].describe(), words);
        assert_eq!(counters.connections[0].get("mode"), Some("SMCR"));
        assert_eq!(counters.connections[0].get("peer"), Some("10.9.0.1:6379"));
        assert_eq!(counters.groups[0].get(""), Some("00000100"));
        assert_eq!(counters.groups[0].get("dev"), Some("rxe0"));
    }

    #[test]
    fn growth_is_counted_from_the_earlier_reading() {
        let before = Counters::parse("smc_rs 1\nfallback_total 1\nfallback 0x03010000 client 1\n");
        let after = Counters::parse(TEXT);
        assert_eq!(after.growth(&before, "fallback_total"), 2);
        assert_eq!(before.growth(&after, "fallback_total"), 0);
        let new = after.new_fallbacks(&before);
        let new: Vec<_> = new
            .iter()
            .map(|one| (&*one.reason, &*one.side, one.count))
            .collect();
        assert_eq!(
            new,
            [("0x03010000", "client", 1), ("0x05000000", "server", 1)]
        );
        assert!(after.new_fallbacks(&after).is_empty());
    }

    #[test]
    fn foreign_text_is_no_module() {
        for text in [
            "",
            "\n\n",
            "cat: /proc/net/smc_rs: No such file or directory\n",
            "conn\nlgr\n",
        ] {
            assert!(!Counters::parse(text).is_module(), "{text:?}");
        }
    }
}
