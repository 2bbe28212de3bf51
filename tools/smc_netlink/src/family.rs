// SPDX-License-Identifier: GPL-2.0

//! Generic netlink families.

use netlink_sys::protocols::NETLINK_GENERIC;

use crate::exchange::{Exchange, Request};
use crate::{Attrs, Error, Result, Writer};

/// The family that knows the others.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const MCAST_GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;
/// Command, version and two reserved bytes.
const HEADER: usize = 4;

/// A connection to a family of the kernel.
pub struct Family {
    exchange: Exchange,
    id: u16,
    version: u8,
    controller: Attrs,
}

impl Family {
    /// Looks a family up.
    ///
    /// # Errors
    ///
    /// [`Error::NoFamily`] when the kernel does not have it.
    pub fn open(name: &'static str, version: u8) -> Result<Self> {
        let mut exchange = Exchange::open(NETLINK_GENERIC)?;
        let request = Request {
            kind: CONTROLLER,
            list: false,
            body: body(GET_FAMILY, 1, &Writer::new().text(FAMILY_NAME, name)),
        };
        let replies = exchange.call(&request).map_err(|error| match error {
            Error::Kernel(libc::ENOENT) => Error::NoFamily(name),
            other => other,
        })?;
        let reply = replies
            .first()
            .ok_or(Error::Malformed("a family has no description"))?;
        let controller = attributes(&reply.body)?;
        let id = controller
            .uint(FAMILY_ID)
            .and_then(|id| u16::try_from(id).ok())
            .ok_or(Error::Malformed("a family has no number"))?;
        Ok(Self {
            exchange,
            id,
            version,
            controller,
        })
    }

    /// Asks for a list; gives command and attributes of each message.
    ///
    /// # Errors
    ///
    /// What the kernel answers.
    pub fn list(&mut self, command: u8) -> Result<Vec<(u8, Attrs)>> {
        self.send(command, true, &Writer::new())
    }

    /// Has something done; gives the messages of the answer.
    ///
    /// # Errors
    ///
    /// What the kernel answers.
    pub fn call(&mut self, command: u8, attrs: &Writer) -> Result<Vec<(u8, Attrs)>> {
        self.send(command, false, attrs)
    }

    fn send(&mut self, command: u8, list: bool, attrs: &Writer) -> Result<Vec<(u8, Attrs)>> {
        let request = Request {
            kind: self.id,
            list,
            body: body(command, self.version, attrs),
        };
        let replies = self.exchange.call(&request)?;
        let messages = replies.iter().filter(|reply| reply.kind == self.id);
        messages
            .map(|reply| {
                let command = *reply
                    .body
                    .first()
                    .ok_or(Error::Malformed("a message has no command"))?;
                Ok((command, attributes(&reply.body)?))
            })
            .collect()
    }

    /// Begins to receive the events of a group.
    ///
    /// # Errors
    ///
    /// [`Error::NoFamily`] when there is no such group.
    pub fn subscribe(&self, group: &'static str) -> Result<()> {
        let groups = self.controller.nested(MCAST_GROUPS)?.all_nested()?;
        let found = groups
            .iter()
            .find(|entry| entry.text(GROUP_NAME).as_deref() == Some(group))
            .and_then(|entry| entry.u32(GROUP_ID))
            .ok_or(Error::NoFamily(group))?;
        self.exchange.socket().add_membership(found)?;
        Ok(())
    }

    /// Waits for events; gives command and attributes of each.
    ///
    /// # Errors
    ///
    /// When the kernel cannot be listened to.
    pub fn events(&self) -> Result<Vec<(u8, Attrs)>> {
        let mut buffer = Vec::with_capacity(64 * 1024);
        self.exchange.socket().recv(&mut buffer, 0)?;
        let replies = crate::parse_replies(&buffer, 0)?;
        let messages = replies.messages.iter();
        messages
            .filter(|reply| reply.kind == self.id)
            .filter_map(|reply| Some((*reply.body.first()?, attributes(&reply.body))))
            .map(|(command, attrs)| Ok((command, attrs?)))
            .collect()
    }
}

/// A message of a family.
fn body(command: u8, version: u8, attrs: &Writer) -> Vec<u8> {
    let mut body = vec![command, version, 0, 0];
    body.extend(attrs.clone().into_bytes());
    body
}

/// The attributes of a message of a family.
fn attributes(body: &[u8]) -> Result<Attrs> {
    let attrs = body
        .get(HEADER..)
        .ok_or(Error::Malformed("a message has no command"))?;
    Attrs::parse(attrs)
}
