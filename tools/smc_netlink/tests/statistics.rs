// SPDX-License-Identifier: GPL-2.0

//! `Documentation/statistics.rst` says of each counter what it counts.

use smc_proto::genl::smc::{fback, pload, rmb, stats, tech};

#[test]
fn each_counter_is_explained() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../Documentation/statistics.rst"
    );
    let page = std::fs::read_to_string(path).expect("the page can be read");
    let words: Vec<&str> = page
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .collect();
    let sets = [fback::SET, pload::SET, rmb::SET, stats::SET, tech::SET];
    for set in sets {
        for attribute in set.attributes.iter().filter(|entry| entry.name != "PAD") {
            let named = words.iter().any(|word| {
                word.strip_suffix(attribute.name)
                    .is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('_'))
            });
            assert!(named, "{}{} is not explained", set.prefix, attribute.name);
        }
    }
}
