// SPDX-License-Identifier: GPL-2.0

//! What happens, as it happens.

use smc_netlink::{Event, Events};
use smc_tools::output::{self, Outcome};

pub(crate) fn run(count: Option<u32>, json: bool) -> Outcome {
    let events = Events::open().map_err(|error| match error {
        smc_netlink::Error::NoFamily(_) => {
            "this kernel's SMC tells no events: load smc_rs with \"modprobe smc_rs\".".to_owned()
        }
        other => other.to_string(),
    })?;
    // Whoever starts this wants to know that nothing is missed from now on.
    eprintln!("smc: waiting for events.");
    let mut left = count;
    loop {
        for event in events.next().map_err(|error| error.to_string())? {
            if json {
                output::print_json(&event)?;
            } else {
                output::print(&text(&event))?;
            }
            left = left.map(|left| left.saturating_sub(1));
            if left == Some(0) {
                return Ok(());
            }
        }
    }
}

fn text(event: &Event) -> String {
    let mut line = event.kind.name().to_owned();
    if let Some(group) = event.group {
        line.push_str(&format!(" {group:08x} over {}", event.device));
    }
    if let (Some(local), Some(peer)) = (event.local, event.peer) {
        line.push_str(&format!(" {local} to {peer}"));
    }
    if event.reason.is_some() {
        line.push_str(&format!(": {}", event.reason.describe()));
        if event.peer_reason.is_some() {
            line.push_str(&format!(
                "; the peer says: {}",
                event.peer_reason.describe()
            ));
        }
        let telling = if event.peer_reason.is_some() {
            event.peer_reason
        } else {
            event.reason
        };
        line.push_str(&format!("\n    {}", telling.hint()));
    }
    if !event.text.is_empty() {
        line.push_str(&format!(": {}", event.text));
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use smc_netlink::{EventKind, Reason};

    #[test]
    fn an_event_is_a_line_with_a_hint() {
        let event = Event {
            kind: EventKind::Fallback,
            group: None,
            device: String::new(),
            local: Some("192.0.2.1:1".parse().expect("an address")),
            peer: Some("192.0.2.2:2".parse().expect("an address")),
            server: false,
            reason: Reason(0x0301_0000),
            peer_reason: Reason(0),
            text: String::new(),
        };
        assert!(text(&event).starts_with(
            "fallback 192.0.2.1:1 to 192.0.2.2:2: the peer does not offer SMC\n    Load an SMC"
        ));
        let event = Event {
            kind: EventKind::GroupDown,
            group: Some(0x300),
            device: "rxe0".to_owned(),
            local: None,
            peer: None,
            reason: Reason(0),
            text: "its link failed".to_owned(),
            ..event
        };
        assert_eq!(
            text(&event),
            "group down 00000300 over rxe0: its link failed\n"
        );
    }
}
