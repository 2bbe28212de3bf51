// SPDX-License-Identifier: GPL-2.0

//! The packet counters of the RDMA devices that a network namespace shows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where the kernel shows RDMA devices.
const CLASS: &str = "/sys/class/infiniband";

/// Counter values by `DEVICE/COUNTER`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters(BTreeMap<String, u64>);

impl DeviceCounters {
    /// Reads lines of the form `DEVICE/COUNTER VALUE`.
    pub fn parse(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        });
        DeviceCounters(pairs.collect())
    }

    /// Reads the counters of all ports of all devices; none when there are no devices.
    pub fn read() -> Self {
        let mut text = String::new();
        for device in entries(Path::new(CLASS)) {
            for port in entries(&Path::new(CLASS).join(&device).join("ports")) {
                let folder = Path::new(CLASS)
                    .join(&device)
                    .join("ports")
                    .join(&port)
                    .join("hw_counters");
                for counter in entries(&folder) {
                    let value = fs::read_to_string(folder.join(&counter)).unwrap_or_default();
                    text.push_str(&format!("{device}/{counter} {}\n", value.trim()));
                }
            }
        }
        DeviceCounters::parse(&text)
    }

    /// The lines that [`DeviceCounters::parse`] reads.
    pub fn to_text(&self) -> String {
        let line = |(name, value): (&String, &u64)| format!("{name} {value}\n");
        self.0.iter().map(line).collect()
    }

    /// How much a counter grew since `before`, over all devices.
    pub fn growth(&self, before: &DeviceCounters, counter: &str) -> u64 {
        self.0
            .iter()
            .filter(|(name, _)| name.rsplit('/').next() == Some(counter))
            .map(|(name, now)| now.saturating_sub(before.0.get(name).copied().unwrap_or(0)))
            .sum()
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_sums_the_devices() {
        let before = DeviceCounters::parse("rxe_a/sent_pkts 5\nrxe_a/rcvd_pkts 1\n");
        let after = DeviceCounters::parse(
            "rxe_a/sent_pkts 9\nrxe_a/rcvd_pkts 2\nrxe_b/sent_pkts 10\nrxe_b/lifespan 10 ms\nbad\n",
        );
        assert_eq!(after.growth(&before, "sent_pkts"), 14);
        assert_eq!(after.growth(&before, "rcvd_pkts"), 1);
        assert_eq!(after.growth(&before, "pkts"), 0);
        assert_eq!(before.growth(&after, "sent_pkts"), 0);
        assert_eq!(DeviceCounters::parse(&after.to_text()), after);
    }
}
