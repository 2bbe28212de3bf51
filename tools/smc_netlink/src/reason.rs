// SPDX-License-Identifier: GPL-2.0

//! Why connections stay on TCP.

use serde::{Serialize, Serializer};
use smc_proto::reason::DeclineReason;

/// A reason to stay on TCP, ours or the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reason(pub u32);

impl Reason {
    fn known(self) -> DeclineReason {
        DeclineReason(self.0)
    }

    /// Its short name.
    pub fn name(self) -> &'static str {
        self.known().name()
    }

    /// What happened, as a phrase without a full stop.
    pub fn describe(self) -> &'static str {
        self.known().describe()
    }

    /// What to do about it, as a sentence.
    pub fn hint(self) -> &'static str {
        self.known().hint()
    }

    /// Whether there is a reason at all.
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Words {
            code: String,
            name: &'static str,
            text: &'static str,
        }
        if !self.is_some() {
            return serializer.serialize_none();
        }
        Words {
            code: format!("{:#010x}", self.0),
            name: self.name(),
            text: self.describe(),
        }
        .serialize(serializer)
    }
}
