// SPDX-License-Identifier: GPL-2.0

//! One SMC-R connection: the protocol's view of it, its two buffers and its place in a link group.
//!
//! A connection is *reserved* when the handshake gives its buffers and token to the peer, *live*
//! once the peer's are known, and leaves the link group's table when both sides have closed: until
//! then the peer may still write into the RMB element, so it cannot be given to anyone else (RFC
//! 7609 section 4.4.2). The socket may be gone long before that.
//!
//! Context: everything but [`recv`] and [`send`] may run in BH context. The connection's lock is
//! taken before the link's and after every mutex; it is held while messages are posted, which keeps
//! them in order.

mod below;
mod close;
mod cork;
mod count;
mod deeds;
pub(crate) mod recv;
pub(crate) mod send;
mod snapshot;
mod vanish;

use kernel::{
    prelude::*,
    sync::Arc,
    workqueue::{
        impl_has_delayed_work,
        new_delayed_work,
        new_work,
        DelayedWork,
        Work, //
    },
};
use smc_kapi::{
    module::now_ms,
    net::SockRef,
    new_spinlock_bh,
    pr_warn_ratelimited,
    sync::SpinLockBh, //
};
use smc_proto::{
    conn::{
        Conn,
        ConnParams,
        Early,
        Events, //
    },
    ids::AlertToken,
    lgr::element_address,
    reason::DeclineReason,
    window::MAX_UNACKED,
    wire::{
        cdc::CdcMessage,
        clc::RdmaEndpoint, //
    },
};

use below::Below;
use count::BufferUsage;
use deeds::Deeds;
pub(crate) use snapshot::Names;

use crate::smc::{
    events,
    lgr::{
        buffers::SendRing,
        rmb::RmbElement,
        LinkGroup, //
    },
    link::{
        tx::{
            NoSlot,
            WriteTarget, //
        },
        Link, //
    },
    stats::{
        Count,
        Dir,
        Item, //
    },
};

/// A connection of a link group.
#[pin_data]
pub(crate) struct Connection {
    group: Arc<LinkGroup>,
    /// Names the connection in the peer's CDC messages.
    token: AlertToken,
    /// Position in the group's table.
    index: u8,
    pub(crate) names: Names,
    rmb: RmbElement,
    send: SendRing,
    /// Counts the two buffers as used.
    _usage: BufferUsage,
    #[pin]
    inner: SpinLockBh<Inner>,
    /// Lets go of writes that were held back.
    #[pin]
    uncork: DelayedWork<Connection>,
    /// Gives up waiting for the peer's word on a reset of the TCP connection.
    #[pin]
    reset: DelayedWork<Connection, 1>,
    /// The socket whose sleepers and pollers are woken; `None` before accept and after close.
    #[pin]
    owner: SpinLockBh<Option<SockRef>>,
    #[pin]
    below: SpinLockBh<Below>,
    /// Resets the TCP connection.
    #[pin]
    reset_below: Work<Connection, 2>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Connection { self.uncork }
}
impl_has_delayed_work! {
    impl HasDelayedWork<Self, 1> for Connection { self.reset }
}

struct Inner {
    stage: Stage,
    link: Option<Arc<Link>>,
    /// Messages posted and not yet acknowledged.
    in_flight: u8,
    /// Writes are held back: `MSG_MORE`, `TCP_CORK`.
    corked: bool,
    /// Since when a closed socket's connection hears nothing of its peer, in ms.
    waiting_since: Option<u64>,
    /// Since when nothing was heard of a peer that has ended the TCP connection, in ms.
    silent_since: Option<u64>,
    /// The TCP connection was reset; whether after the peer's end of it.
    tcp_reset: Option<bool>,
    /// Bytes that were ever posted.
    sent: u64,
    /// The connection is counted as established.
    counted: bool,
    /// The socket layer knows the error.
    error_reported: bool,
}

#[allow(
    clippy::large_enum_variant,
    reason = "a heap allocation would not make it smaller"
)]
enum Stage {
    /// The peer has our token but we do not have its buffers. Its first messages may be early.
    Reserved { early: Early },
    /// Data may flow.
    Live { conn: Conn, target: WriteTarget },
    /// Nobody has the connection any more and the peer, which was given our buffers, may still write
    /// there: they stay reserved until it says that it is gone, or the link group ends.
    Abandoned,
}

impl Connection {
    /// A connection that waits for the peer's endpoint.
    pub(crate) fn reserve(
        group: Arc<LinkGroup>,
        link: Arc<Link>,
        index: u8,
        token: AlertToken,
        names: Names,
        rmb: RmbElement,
        send: SendRing,
    ) -> Result<Arc<Self>> {
        let usage = BufferUsage::new(group.net().clone(), send.len(), rmb.len());
        Arc::pin_init(
            try_pin_init!(Self {
                group,
                _usage: usage,
                token,
                index,
                names,
                rmb,
                send,
                inner <- new_spinlock_bh!(Inner {
                    stage: Stage::Reserved { early: Early::NONE },
                    link: Some(link),
                    in_flight: 0,
                    corked: false,
                    waiting_since: None,
                    silent_since: None,
                    tcp_reset: None,
                    sent: 0,
                    counted: false,
                    error_reported: false,
                }, "smc_connection"),
                uncork <- new_delayed_work!("smc_connection_uncork"),
                reset <- new_delayed_work!("smc_connection_reset"),
                owner <- new_spinlock_bh!(None, "smc_connection_owner"),
                below <- new_spinlock_bh!(Below::NONE, "smc_connection_tcp"),
                reset_below <- new_work!("smc_connection_reset_tcp"),
            }? Error),
            GFP_KERNEL,
        )
    }

    pub(crate) fn group(&self) -> &Arc<LinkGroup> {
        &self.group
    }

    pub(crate) fn token(&self) -> AlertToken {
        self.token
    }

    pub(crate) fn index(&self) -> u8 {
        self.index
    }

    /// The RMB element the peer writes into.
    pub(crate) fn rmb(&self) -> &RmbElement {
        &self.rmb
    }

    /// The peer's endpoint is known: data may flow. Messages that came early are taken now.
    ///
    /// With `inline`, the urgent byte stays in the stream (`SO_OOBINLINE`).
    ///
    /// # Errors
    ///
    /// `CNFERR` when the element that the peer describes cannot be.
    pub(crate) fn activate(
        self: &Arc<Self>,
        peer: &RdmaEndpoint,
        inline: bool,
    ) -> Result<(), DeclineReason> {
        let remote = element_address(peer.rmb_addr, peer.rmbe_index, peer.buf_size)
            .ok_or(DeclineReason::CNFERR)?;
        let deeds = {
            let mut inner = self.inner.lock();
            let mut conn = Conn::new(ConnParams {
                peer_token: peer.token,
                send_len: self.send.len(),
                peer_len: peer.buf_size.bytes(),
                rmbe_len: self.rmb.len(),
                mover: self.group.mover(),
            });
            conn.set_oob_inline(inline);
            conn.activate();
            let early = match &inner.stage {
                Stage::Reserved { early } => early.message(),
                _ => return Err(DeclineReason::INTERR),
            };
            inner.stage = Stage::Live {
                conn,
                target: WriteTarget {
                    local: self.send.sge(),
                    remote: remote.0,
                    rkey: peer.rkey,
                },
            };
            let events = early.map_or(Events::NONE, |message| self.take_cdc(&mut inner, &message));
            inner.deeds(events)
        };
        self.act(deeds);
        Ok(())
    }

    /// The handshake is over: the connection counts.
    pub(crate) fn established(&self) {
        let stats = &self.group.net().stats;
        stats.smcr.inc();
        let (role, version) = (self.group.role, self.group.terms.version);
        stats.traffic.inc(Count::success(role, version));
        let mut inner = self.inner.lock();
        if inner.link.is_some() {
            inner.counted = true;
            stats.active.add(1);
        }
        drop(inner);
        events::connection(self, true);
    }

    /// From now on `sock` is woken. What happened before is for the caller to look at.
    pub(crate) fn set_owner(&self, sock: SockRef) {
        let old = self.owner.lock().replace(sock);
        drop(old);
    }

    /// A CDC message for this connection arrived. BH context.
    pub(crate) fn cdc(self: &Arc<Self>, message: &CdcMessage) {
        let deeds = {
            let mut inner = self.inner.lock();
            match &mut inner.stage {
                Stage::Reserved { early } => {
                    early.note(message);
                    return;
                }
                Stage::Live { .. } => {
                    let events = self.take_cdc(&mut inner, message);
                    inner.deeds(events)
                }
                Stage::Abandoned => Deeds {
                    finished: message.conn_flags.sender_is_gone(),
                    ..Deeds::NONE
                },
            }
        };
        self.act(deeds);
    }

    /// Lets the protocol decide about a message and posts what it asks for.
    fn take_cdc(self: &Arc<Self>, inner: &mut Inner, message: &CdcMessage) -> Events {
        let Stage::Live { conn, .. } = &mut inner.stage else {
            return Events::NONE;
        };
        inner.waiting_since = inner.waiting_since.map(|_| now_ms());
        inner.silent_since = inner.silent_since.map(|_| now_ms());
        let events = match conn.on_cdc(message) {
            Ok(events) => events,
            Err(violation) => {
                self.group.net().stats.cdc_violations.inc();
                pr_warn_ratelimited!(
                    "Connection {:#x} is reset because {}.\n",
                    self.token.0,
                    violation.describe()
                );
                conn.abort()
            }
        };
        if let Some(offset) = conn.urgent_wanted() {
            conn.urgent_hold(self.rmb.byte_at(offset));
        }
        events.with(self.push_locked(inner))
    }

    /// Posts what may go now. Any context.
    pub(crate) fn push(self: &Arc<Self>) {
        self.locked(|inner| self.push_locked(inner));
    }

    /// A message and the writes before it were acknowledged. BH context.
    pub(crate) fn completed(self: &Arc<Self>, bytes: u32) {
        self.locked(|inner| {
            inner.in_flight = inner.in_flight.saturating_sub(1);
            let events = match &mut inner.stage {
                Stage::Live { conn, .. } => conn.completed(bytes),
                _ => Events::NONE,
            };
            let events = events.with(self.push_locked(inner));
            // Who lingers waits for more than the room that completions make.
            events.with_if(inner.is_through(), Events::WRITABLE)
        });
    }

    /// Posts writes and messages until nothing is due, or slots or the flight limit say stop.
    fn push_locked(self: &Arc<Self>, inner: &mut Inner) -> Events {
        let stats = &self.group.net().stats;
        let mut events = Events::NONE;
        let Inner {
            stage: Stage::Live { conn, target },
            link: Some(link),
            in_flight,
            corked,
            sent,
            ..
        } = inner
        else {
            return events;
        };
        while *in_flight < MAX_UNACKED {
            let waits = conn.tx().pending() > 0;
            let held = *corked && !conn.is_closing() && conn.send_room() > 0;
            let plan = if held || !waits {
                None
            } else {
                let cork = self.group.net().settings.autocorking_size();
                conn.next_write_behind(*in_flight, cork)
            };
            if plan.is_none() && !conn.cdc_due() {
                if !held && waits && conn.tx().peer_room() == 0 {
                    let full = Count::item(Dir::Tx, Item::FullPeer);
                    stats.traffic.inc(full);
                }
                break;
            }
            let bytes = plan.map_or(0, |plan| plan.len);
            let slot = match link.take_slot(self, bytes) {
                Ok(slot) => slot,
                Err(NoSlot::AllInUse) => {
                    stats.traffic.inc(Count::SLOT_WAITS);
                    break;
                }
                Err(NoSlot::LinkClosed) => break,
            };
            if let Some(plan) = &plan {
                events = events.with(conn.posted(plan));
            }
            let message = conn.next_cdc().emit();
            let Ok(writes) = link.post_cdc(slot, &message, plan.as_ref(), target) else {
                self.group.link_failed();
                break;
            };
            *in_flight += 1;
            *sent += u64::from(bytes);
            stats.traffic.inc(Count::CDC_SENT);
            match plan {
                Some(plan) => {
                    stats.traffic.add(Count::RDMA_WRITES, writes);
                    stats
                        .traffic
                        .add(Count::RDMA_WRITE_BYTES, u64::from(plan.len));
                }
                None => stats.traffic.inc(Count::WINDOW_UPDATES),
            }
        }
        events
    }

    /// Calls `f` with the protocol state; `None` before the handshake is over.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Conn) -> R) -> Option<R> {
        match &mut self.inner.lock().stage {
            Stage::Live { conn, .. } => Some(f(conn)),
            _ => None,
        }
    }

    /// Whether there is room worth writing into.
    pub(crate) fn is_writable(&self) -> bool {
        self.with(|conn| conn.is_writable()).unwrap_or(false)
    }
}
