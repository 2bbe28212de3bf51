// SPDX-License-Identifier: GPL-2.0

//! Whether the firewall of this host may be in the way.

use std::process::Command;

use serde_json::Value;

use super::Finding;

/// Looks at the rules of nftables, which iptables of today's systems makes as well. Nothing is found
/// where they cannot be read.
pub(super) fn look() -> Vec<Finding> {
    let output = Command::new("nft")
        .args(["--json", "list", "chains"])
        .output();
    let listing = output.ok().filter(|output| output.status.success());
    listing.map_or_else(Vec::new, |output| {
        serde_json::from_slice(&output.stdout).map_or_else(|_| Vec::new(), |list| findings(&list))
    })
}

/// A chain that drops what no rule lets through may drop RoCE: which rules there are is not looked at.
fn findings(list: &Value) -> Vec<Finding> {
    let items = list["nftables"].as_array().map_or(&[][..], Vec::as_slice);
    let chains = items.iter().map(|item| &item["chain"]);
    let strict: Vec<String> = chains
        .filter(|chain| chain["policy"] == "drop")
        .filter(|chain| chain["hook"] == "input" || chain["hook"] == "output")
        .map(|chain| {
            let word = |key: &str| chain[key].as_str().unwrap_or("?").to_owned();
            format!("{} {} {}", word("family"), word("table"), word("name"))
        })
        .collect();
    if strict.is_empty() {
        return vec![Finding::good(
            "no firewall here drops what it does not know",
        )];
    }
    let finding = |chain: &String| {
        Finding::unsure(
            format!("the firewall chain \"{chain}\" lets RoCE through"),
            "It drops what it does not know: accept UDP port 4791 there, in both directions, and leave \
             TCP options as they are.",
        )
    };
    strict.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use serde_json::json;

    #[test]
    fn chains_that_drop_are_told() {
        let chain = |name: &str, hook: &str, policy: &str| {
            json!({"chain": {"family": "inet",
            "table": "filter", "name": name, "hook": hook, "policy": policy}})
        };
        let open = json!({"nftables": [{"metainfo": {}}, chain("input", "input", "accept"),
            chain("forward", "forward", "drop")]});
        let found = findings(&open);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].verdict, Verdict::Good);
        let strict = json!({"nftables": [chain("in", "input", "drop")]});
        let found = findings(&strict);
        assert_eq!(found[0].verdict, Verdict::Unsure);
        assert!(found[0].what.contains("inet filter in"));
        assert_eq!(findings(&json!({}))[0].verdict, Verdict::Good);
    }
}
