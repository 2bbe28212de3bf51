// SPDX-License-Identifier: GPL-2.0

//! The counters and connection list of `/proc/net/smc_rs`.

use std::collections::BTreeMap;
use std::fs;
use std::io;

/// One snapshot for the network namespace of the calling thread.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    values: BTreeMap<String, u64>,
    connections: Vec<BTreeMap<String, String>>,
}

impl Counters {
    /// Reads the file for the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// When the file is missing, which means that the module is not loaded.
    pub fn read() -> io::Result<Counters> {
        // /proc/net names the namespace of the process, not of the thread.
        Ok(Counters::parse(&fs::read_to_string(
            "/proc/thread-self/net/smc_rs",
        )?))
    }

    /// Parses the text; lines of unknown kinds are left out.
    pub fn parse(text: &str) -> Counters {
        let mut c = Counters::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("conn") => c.connections.push(pairs(words)),
                Some("fallback") => {
                    let words: Vec<&str> = words.collect();
                    if let [reason, side, count] = words[..] {
                        if let Ok(count) = count.parse() {
                            c.values.insert(format!("fallback {reason} {side}"), count);
                        }
                    }
                }
                Some(key) => {
                    if let Some(value) = words.next().and_then(|v| v.parse().ok()) {
                        c.values.insert(key.to_owned(), value);
                    }
                }
                None => {}
            }
        }
        c
    }

    /// A counter; zero when the file does not name it.
    pub fn get(&self, key: &str) -> u64 {
        self.values.get(key).copied().unwrap_or(0)
    }

    /// The connections, each as a table of its fields.
    pub fn connections(&self) -> &[BTreeMap<String, String>] {
        &self.connections
    }
}

fn pairs<'a>(words: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    words
        .filter_map(|w| w.split_once('='))
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_lines() {
        let c = Counters::parse(
            "smc_rs 1\nconnections_smcr 7\nfallback_total 2\nfallback 0x03010000 client 2\n\
             conn local=10.9.0.2:4 peer=10.9.0.1:5 mode=SMCR lgr=00000100\nfuture x y z\n",
        );
        assert_eq!(c.get("connections_smcr"), 7);
        assert_eq!(c.get("fallback 0x03010000 client"), 2);
        assert_eq!(c.get("absent"), 0);
        assert_eq!(c.connections()[0]["mode"], "SMCR");
    }
}
