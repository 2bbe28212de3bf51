// SPDX-License-Identifier: GPL-2.0

//! All link groups of the system.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};
use smc_kapi::rdma::{
    Device,
    PortEvent, //
};
use smc_proto::{
    ids::Qpn,
    lgr::Role, //
};

use super::{
    Ending,
    LinkGroup,
    Peer,
    State,
    Terms, //
};
use crate::smc::{
    device::PortChoice,
    global::Global,
    netns::NetState, //
};

/// Numbers of link groups grow in steps that leave the low byte to the link.
const ID_STEP: u32 = 256;

/// The table. Its mutex is taken before every other lock of a group. Process context.
#[pin_data]
pub(crate) struct GroupTable {
    #[pin]
    groups: Mutex<KVec<Arc<LinkGroup>>>,
    next_id: Atomic<u32>,
}

/// Outcome of the server's search for a link group.
pub(crate) enum Found {
    /// An active group with room.
    Active(Arc<LinkGroup>),
    /// A first contact with the same peer is under way; its end is worth waiting for.
    Pending(Arc<LinkGroup>),
    /// A new group in state pending: this handshake is the first contact.
    Fresh(Arc<LinkGroup>),
}

impl GroupTable {
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            groups <- new_mutex!(KVec::new(), "smc_groups"),
            next_id: Atomic::new(ID_STEP),
        }? Error)
    }

    /// Finds a group for a client's proposal, or creates one.
    pub(crate) fn for_server(
        &self,
        global: &Global,
        net: &Arc<NetState>,
        peer: Peer,
        terms: Terms,
        port: &PortChoice,
    ) -> Result<Found> {
        let mut groups = self.groups.lock();
        let mut pending = None;
        for group in groups.iter() {
            if group.role != Role::Server || !group.serves(net, &peer, &terms, port) {
                continue;
            }
            match group.state() {
                State::Active if !group.is_full() => return Ok(Found::Active(group.clone())),
                State::Pending => pending = Some(group.clone()),
                _ => {}
            }
        }
        if let Some(group) = pending {
            return Ok(Found::Pending(group));
        }
        let group = self.create(global, Role::Server, net, peer, terms, port)?;
        groups.push(group.clone(), GFP_KERNEL)?;
        Ok(Found::Fresh(group))
    }

    /// Creates the group of a first contact as client.
    pub(crate) fn new_for_client(
        &self,
        global: &Global,
        net: &Arc<NetState>,
        peer: Peer,
        terms: Terms,
        port: &PortChoice,
    ) -> Result<Arc<LinkGroup>> {
        let mut groups = self.groups.lock();
        let group = self.create(global, Role::Client, net, peer, terms, port)?;
        groups.push(group.clone(), GFP_KERNEL)?;
        Ok(group)
    }

    /// Finds the group that holds the link to the queue pair which the server named. Its first
    /// contact may still be under way here while the server has seen the end of it. The youngest
    /// one counts: a server that lost its queue pairs gives their numbers to new ones before this
    /// side finds out.
    pub(crate) fn for_client(
        &self,
        net: &Arc<NetState>,
        peer: Peer,
        peer_qpn: Qpn,
    ) -> Option<Arc<LinkGroup>> {
        self.groups
            .lock()
            .iter()
            .rev()
            .find(|group| {
                group.role == Role::Client
                    && !group.is_ending()
                    && group.net().id() == net.id()
                    && group.peer == peer
                    && group.has_link_to(peer_qpn)
            })
            .cloned()
    }

    fn create(
        &self,
        global: &Global,
        role: Role,
        net: &Arc<NetState>,
        peer: Peer,
        terms: Terms,
        port: &PortChoice,
    ) -> Result<Arc<LinkGroup>> {
        let id = self.next_id.fetch_add(ID_STEP, Relaxed);
        LinkGroup::new(
            id,
            role,
            peer,
            terms,
            port.clone(),
            net.clone(),
            global.queues.clone(),
        )
    }

    /// Takes a group out; it was ended.
    pub(super) fn forget(&self, group: &Arc<LinkGroup>) {
        let mut groups = self.groups.lock();
        if let Some(index) = groups.iter().position(|entry| Arc::ptr_eq(entry, group)) {
            let entry = groups.remove(index);
            drop(groups);
            drop(entry);
        }
    }

    /// The group with the next number above `id`, for listing.
    pub(crate) fn after(&self, id: u32) -> Option<Arc<LinkGroup>> {
        // Groups get rising numbers under the mutex and are never moved.
        let groups = self.groups.lock();
        let index = groups.partition_point(|group| group.id <= id);
        groups.get(index).cloned()
    }

    /// How many active groups have their link on a port of a device.
    pub(crate) fn links_on(&self, device: u64, port: u8) -> u32 {
        let groups = self.groups.lock();
        let on_port = groups.iter().filter(|group| {
            let own = &group.port;
            own.device.id() == device && own.port == port && group.state() == State::Active
        });
        // CAST: A device has no 4 billion queue pairs.
        on_port.count() as u32
    }

    /// The group at a position, for listing.
    pub(crate) fn entry(&self, index: usize) -> Option<Arc<LinkGroup>> {
        self.groups.lock().get(index).cloned()
    }

    /// Asks the groups that `matches` chooses to end; the work is done later.
    pub(crate) fn end_matching(&self, ending: Ending, matches: impl Fn(&LinkGroup) -> bool) {
        for group in self.groups.lock().iter().filter(|group| matches(group)) {
            group.end(ending);
        }
    }

    /// Ends the groups that `matches` chooses before it returns. May sleep.
    pub(crate) fn end_matching_now(&self, ending: Ending, matches: impl Fn(&LinkGroup) -> bool) {
        loop {
            let group = {
                let groups = self.groups.lock();
                groups.iter().find(|group| matches(group)).cloned()
            };
            match group {
                Some(group) => group.end_now(ending),
                None => return,
            }
        }
    }

    /// Ends the groups whose peer has lost its end: `confirmed` has a link to the queue pair that
    /// theirs led to, and that was shown by messages over the link itself, not only claimed.
    pub(crate) fn end_superseded(&self, confirmed: &Arc<LinkGroup>) {
        let Some(qpn) = confirmed.link().and_then(|link| link.peer_qpn()) else {
            return;
        };
        self.end_matching(Ending::Superseded, |group| {
            group.id != confirmed.id
                && group.net().id() == confirmed.net().id()
                && group.peer.gid == confirmed.peer.gid
                && group.port.same_as(&confirmed.port)
                && group.has_link_to(qpn)
        });
    }

    /// Tells the links on `device` about an event of one of its ports.
    pub(crate) fn port_event(&self, device: &Arc<Device>, port: u32, event: PortEvent) {
        for group in self.groups.lock().iter().filter(|group| group.uses(device)) {
            if let Some(link) = group.link() {
                link.port_event(port, event);
            }
        }
    }
}

impl LinkGroup {
    /// Whether the group fits a proposal of `peer` under `terms` over `port`.
    fn serves(&self, net: &Arc<NetState>, peer: &Peer, terms: &Terms, port: &PortChoice) -> bool {
        self.net().id() == net.id()
            && self.peer == *peer
            && self.terms.version == terms.version
            && self.terms.eid == terms.eid
            && self.port.same_as(port)
    }

    fn has_link_to(&self, qpn: Qpn) -> bool {
        self.link().is_some_and(|link| link.peer_qpn() == Some(qpn))
    }
}
