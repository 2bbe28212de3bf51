// SPDX-License-Identifier: GPL-2.0

//! The end of a link group, and the periodic look at what is idle.

use kernel::{
    prelude::*,
    sync::Arc,
    workqueue::WorkItem, //
};
use smc_kapi::{
    module::now_ms,
    pr_info_ratelimited,
    pr_warn_ratelimited,
    rdma::Completion,
    trace,
    work, //
};
use smc_proto::{
    genl::smc::link_state,
    ids::{
        LinkId,
        Rkey, //
    },
    llc_flow::MAX_DELETE_V1, //
};

use super::{
    buffers::BufferPool,
    LinkGroup,
    State, //
};
use crate::smc::{
    events,
    global, //
};

/// Milliseconds between two looks at a group.
const TICK_MS: u32 = 2_000;

/// Why a link group ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// No connection for a while.
    Idle,
    /// The first contact did not succeed.
    FirstContactFailed,
    /// The queue pair failed.
    LinkFailed,
    /// The peer deleted the link, or says that our views of the group differ.
    Peer,
    /// The peer has made its queue pair anew, for another group.
    Superseded,
    /// The peer broke the protocol on the link.
    Violation,
    /// The device is being removed.
    DeviceRemoved,
    /// The network namespace is being deleted.
    NamespaceGone,
    /// The module is being unloaded.
    ModuleExit,
}

impl Ending {
    /// Why, in words for the log; `None` for what happens all the time.
    const fn describe(self) -> Option<&'static str> {
        match self {
            Ending::Idle | Ending::NamespaceGone | Ending::ModuleExit => None,
            Ending::FirstContactFailed => Some("its first connection could not be set up"),
            Ending::LinkFailed => Some("its link failed"),
            Ending::Peer => Some("the peer ended it"),
            Ending::Superseded => Some("the peer lost its end and has made a new one"),
            Ending::Violation => Some("the peer broke the protocol"),
            Ending::DeviceRemoved => Some("its device was removed"),
        }
    }

    /// Whether the link still works, so that the peer can be told.
    const fn is_orderly(self) -> bool {
        matches!(
            self,
            Ending::Idle | Ending::NamespaceGone | Ending::ModuleExit
        )
    }
}

impl LinkGroup {
    /// Ends the group; the work is done later. Any context.
    pub(crate) fn end(self: &Arc<Self>, ending: Ending) {
        if self.mark_ending(ending) {
            work::queue::<_, 1>(&self.queues.link, self);
        }
    }

    /// Ends the group before it returns, whoever asked for it first. May sleep.
    pub(crate) fn end_now(self: &Arc<Self>, ending: Ending) {
        self.mark_ending(ending);
        self.tear_down(ending);
        // Another caller may have begun: its work is waited for.
        drop(work::cancel_sync::<_, 1>(self));
    }

    /// The queue pair failed. Any context.
    pub(crate) fn link_failed(self: &Arc<Self>) {
        self.end(Ending::LinkFailed);
    }

    /// A work request failed, and with it the queue pair.
    pub(crate) fn link_error(self: &Arc<Self>, completion: &Completion) {
        if !self.is_ending() {
            pr_warn_ratelimited!(
                "Link group {:08x} lost its link over {}: {}.\n",
                self.id,
                self.port.device.name().as_str(),
                completion.status_text()
            );
        }
        self.link_failed();
    }

    fn mark_ending(&self, ending: Ending) -> bool {
        let (link, before) = {
            // Only looked at: the last reference to a link is dropped where one may sleep.
            let link = self.link.lock();
            let mut state = self.state.lock();
            if matches!(*state, State::Ending(_)) {
                return false;
            }
            let before = core::mem::replace(&mut *state, State::Ending(ending));
            (link.as_ref().map(|link| link.id), before)
        };
        self.state_changed.notify_all();
        let why = ending.describe().unwrap_or("");
        if let Some(link) = link {
            self.tell_link_down(link, before, why);
        }
        events::group(self, Some(why));
        if let Some(why) = ending.describe() {
            pr_info_ratelimited!(
                "Link group {:08x} over {} ends with {} connections because {}.\n",
                self.id,
                self.port.device.name().as_str(),
                self.conns_num(),
                why
            );
        }
        true
    }

    /// Tells those who look that the link goes down; `before` is the state that the group was in.
    fn tell_link_down(&self, link: LinkId, before: State, why: &str) {
        let was_up = before == State::Active;
        if was_up {
            events::link(self, link, Some(why));
        }
        if trace::watches_link_down() {
            let state = if was_up {
                link_state::ACTIVE
            } else {
                link_state::ACTIVATING
            };
            let name = self.port.device.name();
            trace::link_down(self.id, self.net().id(), state, name.as_str(), why);
        }
    }

    /// Whether the group has come to its end.
    pub(crate) fn is_ending(&self) -> bool {
        matches!(self.state(), State::Ending(_))
    }

    /// Takes everything apart that a destructor could not: afterwards only memory is left.
    fn tear_down(self: &Arc<Self>, ending: Ending) {
        let _one_at_a_time = self.ending.lock();
        let link = self.link.lock().take();
        if let Some(link) = &link {
            if ending.is_orderly() {
                self.tell_peer_of_end(link);
            }
        }
        self.llc_news.notify_all();
        for index in 0..u8::MAX {
            if let Some(conn) = self.connection(index) {
                drop(conn.link_down());
            }
        }
        let empty = BufferPool::new(self.buffer_type);
        let pool = core::mem::replace(&mut *self.buffers.lock(), empty);
        match link {
            Some(link) => link.close(pool),
            None => drop(pool),
        }
        work::cancel_delayed_sync::<_, 2>(self);
        // The group stays in the table until now, so that whoever ends all groups waits for those
        // that are being taken apart.
        if let Some(global) = global::get() {
            global.groups.forget(self);
        }
    }

    /// Lets [`LinkGroup::tick`] run after a while.
    pub(super) fn schedule_tick(self: &Arc<Self>) {
        work::schedule::<_, 2>(&self.queues.link, self, TICK_MS);
        // The group's end cancels the timer, but maybe did so just before it was there.
        if self.is_ending() {
            drop(work::try_cancel_delayed::<_, 2>(self));
        }
    }

    fn tick(self: &Arc<Self>) {
        let now = now_ms();
        if self.end_if_idle(now, self.role.idle_ms()) {
            return;
        }
        for index in 0..u8::MAX {
            if let Some(conn) = self.connection(index) {
                conn.check_vanished(now);
                conn.check_linger(now);
            }
        }
        self.trim(now);
        self.probe(now);
        if self.state() == State::Active {
            self.schedule_tick();
        }
    }

    /// Gives back buffers that were idle for long; the peer is told not to use their keys.
    fn trim(self: &Arc<Self>, now: u64) {
        let mut idle = {
            let mut pool = self.buffers.lock();
            pool.trim_rings(now);
            pool.take_idle_rmbs(now)
        };
        let Some(link) = self.link() else {
            return;
        };
        let mut told = 0;
        for rmbs in idle.chunks(MAX_DELETE_V1) {
            let mut rkeys = [Rkey(0); MAX_DELETE_V1];
            for (rkey, (rmb, _)) in rkeys.iter_mut().zip(rmbs) {
                *rkey = rmb.rkey();
            }
            let rkeys = rkeys.get(..rmbs.len()).unwrap_or(&[]);
            match self.delete_rkeys(&link, rkeys) {
                Ok(()) => told += rmbs.len(),
                Err(error) if error == EBUSY => break,
                // The group ends, and all its keys with it.
                Err(_) => return,
            }
        }
        // The peer still has the keys of the others: they are withdrawn another time.
        while idle.len() > told {
            if let Some(entry) = idle.pop() {
                self.buffers.lock().put_back(entry);
            }
        }
    }
}

impl WorkItem<1> for LinkGroup {
    type Pointer = Arc<LinkGroup>;

    fn run(this: Arc<LinkGroup>) {
        if let State::Ending(ending) = this.state() {
            this.tear_down(ending);
        }
    }
}

impl WorkItem<2> for LinkGroup {
    type Pointer = Arc<LinkGroup>;

    fn run(this: Arc<LinkGroup>) {
        this.tick();
    }
}
