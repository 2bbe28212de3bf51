// SPDX-License-Identifier: GPL-2.0

//! The commands of `SMC_GEN_NETLINK` that concern the identifier table.

use neli::consts::nl::NlmF;
use neli::consts::socket::NlFamily;
use neli::err::RouterError;
use neli::genl::{AttrTypeBuilder, Genlmsghdr, GenlmsghdrBuilder, Nlattr, NlattrBuilder};
use neli::nl::NlPayload;
use neli::router::synchronous::NlRouter;
use neli::types::{Buffer, GenlBuffer};
use neli::utils::Groups;

use crate::eid::Eid;

const FAMILY: &str = "SMC_GEN_NETLINK";
const FAMILY_VERSION: u8 = 1;
/// `SMC_NETLINK_DUMP_UEID`
const DUMP_UEID: u8 = 9;
/// `SMC_NETLINK_ADD_UEID`
const ADD_UEID: u8 = 10;
/// `SMC_NETLINK_REMOVE_UEID`
const REMOVE_UEID: u8 = 11;
/// `SMC_NETLINK_FLUSH_UEID`
const FLUSH_UEID: u8 = 12;
/// `SMC_NLA_EID_TABLE_ENTRY`
const EID_TABLE_ENTRY: u16 = 1;

type Message = Genlmsghdr<u8, u16>;

/// What went wrong, before it is put into words.
#[derive(Debug)]
enum Failure {
    /// The netlink family does not exist.
    NoFamily,
    /// The kernel answered with this errno.
    Kernel(i32),
    /// No answer of the expected kind came.
    Exchange(String),
}

/// Adds an identifier to the kernel's table.
///
/// # Errors
///
/// A sentence for the user.
pub(crate) fn add(eid: &Eid) -> Result<(), String> {
    let name = eid.as_str();
    call(ADD_UEID, NlmF::ACK, Some(eid))
        .map(drop)
        .map_err(|failure| match failure {
            Failure::Kernel(libc::EEXIST) => format!("the identifier {name} is already set."),
            Failure::Kernel(libc::ERANGE) => {
                "four identifiers are set already: remove one with \"smc_ueid del\" first."
                    .to_owned()
            }
            Failure::Kernel(libc::EINVAL) => format!("the kernel refuses the identifier {name}."),
            other => explain(other),
        })
}

/// Removes an identifier from the kernel's table.
///
/// # Errors
///
/// A sentence for the user.
pub(crate) fn remove(eid: &Eid) -> Result<(), String> {
    let name = eid.as_str();
    match call(REMOVE_UEID, NlmF::ACK, Some(eid)) {
        Ok(_) => Ok(()),
        // The identifier is gone and the system's own one is in use from now on.
        Err(Failure::Kernel(libc::EAGAIN)) => Ok(()),
        Err(Failure::Kernel(libc::ENOENT)) => Err(format!("the identifier {name} is not set.")),
        Err(other) => Err(explain(other)),
    }
}

/// Empties the kernel's table.
///
/// # Errors
///
/// A sentence for the user.
pub(crate) fn flush() -> Result<(), String> {
    call(FLUSH_UEID, NlmF::ACK, None).map(drop).map_err(explain)
}

/// Reads the kernel's table, without padding.
///
/// # Errors
///
/// A sentence for the user.
pub(crate) fn list() -> Result<Vec<String>, String> {
    let answers = call(DUMP_UEID, NlmF::DUMP, None).map_err(explain)?;
    Ok(answers
        .iter()
        .flat_map(|answer| answer.attrs().iter())
        .filter(|attribute| *attribute.nla_type().nla_type() == EID_TABLE_ENTRY)
        .map(|attribute| {
            let bytes: &[u8] = attribute.nla_payload().as_ref();
            let text = String::from_utf8_lossy(bytes);
            text.trim_end_matches(['\0', ' ']).to_owned()
        })
        .collect())
}

/// Sends one command and collects the answers up to the end of the exchange.
fn call(command: u8, flags: NlmF, eid: Option<&Eid>) -> Result<Vec<Message>, Failure> {
    let (router, _) =
        NlRouter::connect(NlFamily::Generic, None, Groups::empty()).map_err(failure)?;
    let family = router
        .resolve_genl_family(FAMILY)
        .map_err(|error| match failure(error) {
            Failure::Kernel(libc::ENOENT) => Failure::NoFamily,
            other => other,
        })?;
    let attributes: GenlBuffer<u16, Buffer> = eid.map(attribute).transpose()?.into_iter().collect();
    let request: Message = GenlmsghdrBuilder::default()
        .cmd(command)
        .version(FAMILY_VERSION)
        .attrs(attributes)
        .build()
        .map_err(|error| Failure::Exchange(error.to_string()))?;
    let answers = router
        .send::<u16, Message, u16, Message>(family, flags, NlPayload::Payload(request))
        .map_err(failure)?;
    let mut messages = Vec::new();
    for answer in answers {
        if let NlPayload::Payload(message) = answer.map_err(failure)?.nl_payload() {
            messages.push(message.clone());
        }
    }
    Ok(messages)
}

fn attribute(eid: &Eid) -> Result<Nlattr<u16, Buffer>, Failure> {
    let words = |error: &dyn std::error::Error| Failure::Exchange(error.to_string());
    let kind = AttrTypeBuilder::default()
        .nla_type(EID_TABLE_ENTRY)
        .build()
        .map_err(|error| words(&error))?;
    NlattrBuilder::default()
        .nla_type(kind)
        .nla_payload(&eid.attribute()[..])
        .build()
        .map_err(|error| words(&error))
}

fn failure<T: std::fmt::Debug, P: std::fmt::Debug>(error: RouterError<T, P>) -> Failure {
    match error {
        RouterError::Nlmsgerr(answer) => Failure::Kernel(-*answer.error()),
        other => Failure::Exchange(other.to_string()),
    }
}

/// The sentences that all commands share.
fn explain(failure: Failure) -> String {
    match failure {
        Failure::NoFamily => "the kernel has no SMC: load it with \"modprobe smc_rs\".".to_owned(),
        Failure::Kernel(libc::EPERM | libc::EACCES) => {
            "only root may change the identifiers: run it again as root.".to_owned()
        }
        Failure::Kernel(libc::EOPNOTSUPP) => {
            "this version of the SMC module does not know the command: use a newer one.".to_owned()
        }
        Failure::Kernel(error) => {
            let error = std::io::Error::from_raw_os_error(error);
            format!("the kernel refused the command: {error}.")
        }
        Failure::Exchange(what) => format!("the exchange with the kernel failed: {what}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_errors_are_sentences_that_say_what_to_do() {
        for (failure, hint) in [
            (Failure::NoFamily, "modprobe smc_rs"),
            (Failure::Kernel(libc::EPERM), "as root"),
            (Failure::Kernel(libc::EOPNOTSUPP), "newer"),
            (Failure::Kernel(libc::ENOMEM), "refused the command"),
        ] {
            let sentence = explain(failure);
            assert!(sentence.contains(hint), "{sentence}");
            assert!(sentence.ends_with('.'), "{sentence}");
        }
    }

    #[test]
    fn the_attribute_carries_33_bytes() {
        let eid: Eid = "LAB-1".parse().expect("the identifier is good");
        let attribute = attribute(&eid).expect("the attribute can be built");
        let bytes: &[u8] = attribute.nla_payload().as_ref();
        assert_eq!(bytes, &eid.attribute()[..]);
        assert_eq!(*attribute.nla_type().nla_type(), EID_TABLE_ENTRY);
    }
}
