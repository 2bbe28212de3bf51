// SPDX-License-Identifier: GPL-2.0

//! Link groups: what two hosts share for all connections between them in one direction.
//!
//! A group is created by the first contact, serves up to the agreed number of connections, and ends
//! when it has been idle for a while, when its last link fails, or when its device or namespace
//! goes. [`ending`] has all of that; [`llc`] the conversation about links and keys.
//!
//! After the end nothing in a group needs a sleeping destructor, so that the last reference may be
//! dropped anywhere.

pub(crate) mod buffers;
pub(crate) mod ending;
mod inbox;
pub(crate) mod llc;
pub(crate) mod memory;
mod rkeys;
pub(crate) mod rmb;
pub(crate) mod show;
pub(crate) mod table;

use kernel::{
    new_condvar, new_mutex,
    prelude::*,
    sync::{
        Arc,
        CondVar,
        Mutex, //
    },
    time::msecs_to_jiffies,
    workqueue::{
        impl_has_delayed_work,
        impl_has_work,
        new_delayed_work,
        new_work,
        DelayedWork,
        Work, //
    },
};
use smc_kapi::{
    new_spinlock_bh,
    pr_warn_ratelimited,
    rdma::Device,
    sync::SpinLockBh,
    work::OwnedQueue, //
};
use smc_proto::{
    ids::{
        AlertToken,
        Eid,
        Gid,
        LinkUid,
        Mac,
        PeerId,
        Release as ProtoRelease,
        Version, //
    },
    lgr::{
        Role,
        TokenSlot,
        TokenSlots,
        MAX_CONNS, //
    },
    window::Mover,
    wire::cdc::CdcMessage, //
};

use crate::smc::{
    conn::{
        Connection,
        Names, //
    },
    device::PortChoice,
    events,
    link::Link,
    netns::NetState,
    stats::{
        Count,
        Dir, //
    },
};
use buffers::{
    BufferPool,
    Wish, //
};
use inbox::Inbox;
use llc::Llc;
use memory::BufferType;
use show::PeerInfo;

pub(crate) use ending::Ending;

/// Who the peer of a link group is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) id: PeerId,
    pub(crate) gid: Gid,
    pub(crate) mac: Mac,
}

/// What the first contact agreed on for a link group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) version: Version,
    pub(crate) release: ProtoRelease,
    pub(crate) eid: Option<Eid>,
    pub(crate) max_conns: u8,
    pub(crate) max_links: u8,
    /// RoCEv2 through a router: the next hop's MAC address has to be looked up.
    pub(crate) routed: bool,
}

/// Where a link group is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The first contact is under way.
    Pending,
    /// Connections may join.
    Active,
    /// No more connections; everything is being torn down.
    Ending(Ending),
}

/// The queues that run what link groups and their connections put off.
#[derive(Clone)]
pub(crate) struct Queues {
    /// What handshakes wait for: link messages, and the end of link groups.
    pub(crate) link: Arc<OwnedQueue>,
    /// Lets go of what writers held back, when they have had their turn.
    pub(crate) writer: Arc<OwnedQueue>,
}

/// A link group.
#[pin_data]
pub(crate) struct LinkGroup {
    pub(crate) id: u32,
    pub(crate) role: Role,
    pub(crate) terms: Terms,
    pub(crate) peer: Peer,
    pub(crate) port: PortChoice,
    pub(crate) buffer_type: BufferType,
    #[pin]
    peer_info: SpinLockBh<PeerInfo>,
    net: Arc<NetState>,
    queues: Queues,
    #[pin]
    state: SpinLockBh<State>,
    #[pin]
    state_changed: CondVar,
    #[pin]
    conns: SpinLockBh<Conns>,
    #[pin]
    link: SpinLockBh<Option<Arc<Link>>>,
    #[pin]
    buffers: Mutex<BufferPool>,
    #[pin]
    llc: Mutex<Llc>,
    #[pin]
    llc_news: CondVar,
    #[pin]
    inbox: SpinLockBh<Inbox>,
    /// Held while the group is taken apart.
    #[pin]
    ending: Mutex<()>,
    #[pin]
    llc_work: Work<LinkGroup, 0>,
    #[pin]
    end_work: Work<LinkGroup, 1>,
    #[pin]
    tick: DelayedWork<LinkGroup, 2>,
}

impl_has_work! {
    impl HasWork<Self, 0> for LinkGroup { self.llc_work }
    impl HasWork<Self, 1> for LinkGroup { self.end_work }
}
impl_has_delayed_work! {
    impl HasDelayedWork<Self, 2> for LinkGroup { self.tick }
}

/// The connections of a group and the tokens that name them.
struct Conns {
    tokens: TokenSlots<KVec<TokenSlot>>,
    slots: KVec<Option<Arc<Connection>>>,
    idle_since: u64,
}

impl LinkGroup {
    /// A group in state [`State::Pending`] without a link.
    pub(crate) fn new(
        id: u32,
        role: Role,
        peer: Peer,
        terms: Terms,
        port: PortChoice,
        net: Arc<NetState>,
        queues: Queues,
    ) -> Result<Arc<Self>> {
        let limit = terms.max_conns;
        let now = smc_kapi::module::now_ms();
        let llc = Llc::new()?;
        let kind = net.settings.buffer_type();
        Arc::pin_init(
            try_pin_init!(Self {
                id,
                role,
                terms,
                peer,
                port,
                buffer_type: kind,
                peer_info <- new_spinlock_bh!(PeerInfo::UNKNOWN, "smc_lgr_peer"),
                net,
                queues,
                state <- new_spinlock_bh!(State::Pending, "smc_lgr_state"),
                state_changed <- new_condvar!("smc_lgr_state_changed"),
                conns <- new_spinlock_bh!(Conns::new(limit, now)?, "smc_lgr_conns"),
                link <- new_spinlock_bh!(None, "smc_lgr_link"),
                buffers <- new_mutex!(BufferPool::new(kind), "smc_lgr_buffers"),
                llc <- new_mutex!(llc, "smc_lgr_llc"),
                llc_news <- new_condvar!("smc_lgr_llc_news"),
                inbox <- new_spinlock_bh!(Inbox::new()?, "smc_lgr_inbox"),
                ending <- new_mutex!((), "smc_lgr_ending"),
                llc_work <- new_work!("smc_lgr_llc_work"),
                end_work <- new_work!("smc_lgr_end_work"),
                tick <- new_delayed_work!("smc_lgr_tick"),
            }? Error),
            GFP_KERNEL,
        )
    }

    pub(crate) fn net(&self) -> &Arc<NetState> {
        &self.net
    }

    /// The queue that lets go of what writers held back.
    pub(crate) fn writer_queue(&self) -> &OwnedQueue {
        &self.queues.writer
    }

    pub(crate) fn state(&self) -> State {
        *self.state.lock()
    }

    /// The link, while there is one.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        self.link.lock().clone()
    }

    /// Whether the group has an object on `device`.
    pub(crate) fn uses(&self, device: &Arc<Device>) -> bool {
        self.port.device.id() == device.id()
    }

    /// Creates the one link. May sleep.
    pub(crate) fn create_link(self: &Arc<Self>) -> Result<Arc<Link>> {
        let id = llc::FIRST_LINK;
        let uid = LinkUid(self.id | u32::from(id.0));
        let link = Link::new(self, self.port.clone(), id, uid)?;
        let mut slot = self.link.lock();
        if self.state() != State::Pending {
            drop(slot);
            link.close(BufferPool::new(self.buffer_type));
            return Err(ENOLINK);
        }
        *slot = Some(link.clone());
        Ok(link)
    }

    /// The first contact succeeded: connections may join.
    pub(crate) fn activate(self: &Arc<Self>) -> Result {
        {
            let mut state = self.state.lock();
            if *state != State::Pending {
                return Err(ENOLINK);
            }
            *state = State::Active;
        }
        self.net.stats.first_contacts.inc();
        events::group(self, None);
        events::link(self, llc::FIRST_LINK, None);
        self.state_changed.notify_all();
        self.schedule_tick();
        Ok(())
    }

    /// Waits until the first contact has succeeded or failed; true if it succeeded.
    pub(crate) fn wait_settled(&self, timeout_ms: u32) -> bool {
        let deadline = smc_kapi::module::now_ms() + u64::from(timeout_ms);
        let mut state = self.state.lock();
        while *state == State::Pending {
            let now = smc_kapi::module::now_ms();
            if now >= deadline {
                return false;
            }
            let left = (deadline - now) as u32;
            let _ = self
                .state_changed
                .wait_interruptible_timeout(&mut state, msecs_to_jiffies(left));
        }
        *state == State::Active
    }

    /// Who moves the bytes of the group's connections.
    pub(crate) fn mover(&self) -> Mover {
        if self.port.device.is_software() {
            Mover::Processor
        } else {
            Mover::Adapter
        }
    }

    /// Takes buffers and a token for a new connection. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOSPC` when the group is full, `ENOLINK` when it is ending, `EREMOTEIO` or `EBUSY` when the
    /// peer does not take the key of a new buffer, `ENOMEM`.
    pub(crate) fn reserve(self: &Arc<Self>, wish: &Wish, names: Names) -> Result<Arc<Connection>> {
        let link = self.link().ok_or(ENOLINK)?;
        let (rmb, ring) = {
            let mut pool = self.buffers.lock();
            // The pool of a group that ends is emptied under its mutex, and has to stay empty.
            if self.is_ending() {
                return Err(ENOLINK);
            }
            let taken = pool.take_element(&self.net, &link, wish)?;
            if taken.is_new_rmb && self.state() == State::Active {
                if let Err(error) = self.announce(&link, &pool, taken.element.rmb()) {
                    pool.discard(taken.element.rmb());
                    return Err(error);
                }
            }
            let (ring, is_new_ring) = pool.take_ring(&self.net, &link, wish)?;
            let traffic = &self.net.stats.traffic;
            let (rx, wanted) = (taken.element.len(), wish.receive.bytes());
            traffic.buffer(Dir::Rx, rx, wanted, taken.is_new_rmb);
            traffic.buffer(Dir::Tx, ring.len(), wish.send.bytes(), is_new_ring);
            (taken.element, ring)
        };
        let (index, token) = self.take_token()?;
        let conn = match Connection::reserve(self.clone(), link, index, token, names, rmb, ring) {
            Ok(conn) => conn,
            Err(error) => {
                self.conns.lock().tokens.release(token);
                return Err(error);
            }
        };
        if self.enter(&conn) {
            Ok(conn)
        } else {
            Err(ENOLINK)
        }
    }

    /// Puts a new connection into the table; false when the group has begun to end since its token
    /// was taken: what ends the connections in the table may have passed its place already.
    fn enter(&self, conn: &Arc<Connection>) -> bool {
        let mut conns = self.conns.lock();
        if self.is_ending() {
            conns.tokens.release(conn.token());
            return false;
        }
        if let Some(slot) = conns.slots.get_mut(usize::from(conn.index())) {
            *slot = Some(conn.clone());
        }
        true
    }

    fn take_token(&self) -> Result<(u8, AlertToken)> {
        let mut conns = self.conns.lock();
        if self.is_ending() {
            return Err(ENOLINK);
        }
        conns.tokens.allocate().ok_or(ENOSPC)
    }

    /// Registers the memory of an RMB and tells the peer its key. The pool's mutex is held, so that
    /// nobody uses the RMB before.
    fn announce(
        self: &Arc<Self>,
        link: &Arc<Link>,
        pool: &BufferPool,
        rmb: &Arc<rmb::Rmb>,
    ) -> Result {
        let mr = pool.registration(rmb).ok_or(EINVAL)?;
        link.register(&mr)?;
        self.confirm_rkey(link, rmb.rkey(), rmb.address())
    }

    /// Registers the memory of the first contact's RMB, whose key the CLC messages carry.
    pub(crate) fn register_first(&self, link: &Arc<Link>, conn: &Connection) -> Result {
        let pool = self.buffers.lock();
        let mr = pool.registration(conn.rmb().rmb()).ok_or(EINVAL)?;
        link.register(&mr)
    }

    /// The connection in slot `index`.
    pub(crate) fn connection(&self, index: u8) -> Option<Arc<Connection>> {
        self.conns
            .lock()
            .slots
            .get(usize::from(index))
            .and_then(Option::clone)
    }

    /// Takes a connection out of the table; true if it was there. The caller's reference keeps it.
    pub(crate) fn forget(&self, conn: &Arc<Connection>) -> bool {
        let mut conns = self.conns.lock();
        if !conns.tokens.release(conn.token()) {
            return false;
        }
        conns.idle_since = smc_kapi::module::now_ms();
        let entry = conns
            .slots
            .get_mut(usize::from(conn.index()))
            .and_then(Option::take);
        drop(conns);
        drop(entry);
        true
    }

    /// A connection keeps its place and its buffers but not the group alive. Any context.
    pub(crate) fn note_abandoned(&self, conn: &Connection) {
        let mut conns = self.conns.lock();
        conns.tokens.abandon(conn.token());
        conns.idle_since = smc_kapi::module::now_ms();
    }

    /// A CDC message arrived. BH context.
    pub(crate) fn cdc(&self, message: &CdcMessage) {
        let conn = {
            let conns = self.conns.lock();
            conns
                .tokens
                .find(message.token)
                .and_then(|index| conns.slots.get(usize::from(index)))
                .and_then(Option::clone)
        };
        // A message for a connection that is gone may come late; that is no violation.
        if let Some(conn) = conn {
            self.net.stats.traffic.inc(Count::CDC_RECEIVED);
            conn.cdc(message);
        }
    }

    /// A message arrived that no peer may send. BH context.
    pub(crate) fn message_violation(&self, what: &str) {
        pr_warn_ratelimited!("Link group {:08x}: {}; it is ignored.\n", self.id, what);
    }

    /// Number of connections.
    pub(crate) fn conns_num(&self) -> u8 {
        self.conns.lock().tokens.used()
    }

    /// Whether another connection has to go to another group.
    pub(crate) fn is_full(&self) -> bool {
        self.conns.lock().tokens.is_full()
    }

    /// Ends the group if it has had no connection for `idle_ms` milliseconds; true if it did. No
    /// connection can join between the look and the end, since a token is taken under the same lock.
    fn end_if_idle(self: &Arc<Self>, now: u64, idle_ms: u64) -> bool {
        let conns = self.conns.lock();
        let idle = conns.tokens.is_idle() && now.saturating_sub(conns.idle_since) >= idle_ms;
        if idle {
            self.end(Ending::Idle);
        }
        idle
    }
}

impl Conns {
    fn new(limit: u8, now: u64) -> Result<Self> {
        let mut tokens = KVec::with_capacity(usize::from(MAX_CONNS), GFP_KERNEL)?;
        let mut slots = KVec::with_capacity(usize::from(MAX_CONNS), GFP_KERNEL)?;
        for _ in 0..MAX_CONNS {
            tokens.push(TokenSlot::default(), GFP_KERNEL)?;
            slots.push(None, GFP_KERNEL)?;
        }
        Ok(Self {
            tokens: TokenSlots::new(tokens, limit),
            slots,
            idle_since: now,
        })
    }
}
