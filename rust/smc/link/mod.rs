// SPDX-License-Identifier: GPL-2.0

//! One RoCE link of a link group: a reliably connected queue pair and what it needs.
//!
//! The link knows nothing of sockets. It sends CDC and LLC messages through a fixed number of send
//! slots ([`tx`]), receives them into a fixed ring ([`rx`]), and hands both to the link group.
//!
//! A link refers to its group and its completion queue refers to the link: two cycles, both cut by
//! [`Link::close`], which the group calls exactly once, in process context.

pub(crate) mod rx;
pub(crate) mod tx;

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};
use smc_kapi::{
    new_spinlock_bh,
    rdma::{
        resolve_dmac,
        Access,
        Completion,
        CompletionHandler,
        Cq,
        Device,
        Mr,
        Pd,
        PortEvent,
        Qp,
        QpCaps,
        RtrAttr,
        RtsAttr, //
    },
    sync::SpinLockBh, //
};
use smc_proto::{
    ids::{
        Gid,
        LinkId,
        LinkUid,
        Mac,
        PathMtu,
        Psn,
        Qpn, //
    },
    wire::clc::RdmaEndpoint, //
};

use crate::smc::{
    device::PortChoice,
    lgr::{
        buffers::BufferPool,
        LinkGroup, //
    },
};

/// Local ACK timeout exponent: 4.096 us * 2^15, about 134 ms.
const ACK_TIMEOUT: u8 = 15;
/// Retries before a missing ACK breaks the link. Some devices take 7 for "without limit"; a peer that
/// is gone for good is then found out by the link test.
const RETRY_COUNT: u8 = 7;
/// Retries after "receiver not ready": 7 means without limit.
const RNR_RETRY: u8 = 7;
/// How long the device may take to register memory, in milliseconds.
const REGISTRATION_MS: u32 = 5_000;
/// How long a peer waits before it retries after our "receiver not ready".
const MIN_RNR_TIMER: u8 = 5;

/// A link of a link group.
#[pin_data]
pub(crate) struct Link {
    pub(crate) port: PortChoice,
    pub(crate) id: LinkId,
    pub(crate) uid: LinkUid,
    /// First packet sequence number that we send.
    pub(crate) psn: Psn,
    /// The group that receives what arrives; taken out by [`Link::close`].
    #[pin]
    group: SpinLockBh<Option<Arc<LinkGroup>>>,
    #[pin]
    pub(crate) tx: SpinLockBh<tx::OwnedSlots>,
    heard_at: Atomic<u64>,
    peer_qpn: Atomic<u32>,
    // Destroyed in this order: the queue pair before its completion queue and protection domain.
    qp: Arc<Qp>,
    registrar: Arc<Qp>,
    cq: Arc<Cq<Link>>,
    pub(crate) pd: Arc<Pd>,
    // Unmapped when no queue pair names them any more.
    pub(crate) tx_memory: tx::SendMemory,
    rx_memory: rx::ReceiveMemory,
    /// Those of the group, once it has ended.
    #[pin]
    buffers: SpinLockBh<Option<BufferPool>>,
}

impl Link {
    /// Creates the queue pair and posts its receive ring; the link can receive after
    /// [`Link::ready_to_receive`] and send after [`Link::ready_to_send`]. May sleep.
    pub(crate) fn new(
        group: &Arc<LinkGroup>,
        port: PortChoice,
        id: LinkId,
        uid: LinkUid,
    ) -> Result<Arc<Self>> {
        let dev = &port.device;
        let pd = Pd::new(dev)?;
        let settings = &group.net().settings;
        let receives = settings.max_recv_wr().min(dev.max_qp_wr());
        let entries = tx::SEND_QUEUE_DEPTH + tx::REGISTRATIONS + receives;
        let cq = Cq::new(dev, entries, 0)?;
        let qp = Qp::new(
            &pd,
            &cq,
            &cq,
            QpCaps {
                send_wr: tx::SEND_QUEUE_DEPTH,
                recv_wr: receives,
                send_sge: 1,
                recv_sge: 1,
                inline: 0,
            },
            None,
        )?;
        qp.to_init(port.port, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
        let registrar = new_registrar(&pd, &cq, &port)?;
        let tx_memory = tx::SendMemory::new(&pd, group.net())?;
        let rx_memory = rx::ReceiveMemory::new(&pd, group.net(), receives)?;
        let slots = tx::OwnedSlots::new(settings.max_send_wr());
        let psn = Psn::new(smc_kapi::module::random_u32());
        let link = Arc::pin_init(
            try_pin_init!(Self {
                port,
                id,
                uid,
                psn,
                group <- new_spinlock_bh!(Some(group.clone()), "smc_link_group"),
                tx <- new_spinlock_bh!(slots, "smc_link_tx"),
                tx_memory,
                rx_memory,
                buffers <- new_spinlock_bh!(None, "smc_link_buffers"),
                heard_at: Atomic::new(smc_kapi::module::now_ms()),
                peer_qpn: Atomic::new(0),
                qp,
                registrar,
                cq,
                pd,
            }? Error),
            GFP_KERNEL,
        )?;
        link.rx_memory.post_all(&link.qp)?;
        link.cq.attach(link.clone())?;
        Ok(link)
    }

    /// Number of our queue pair.
    pub(crate) fn qpn(&self) -> Option<Qpn> {
        Qpn::new(self.qp.qpn())
    }

    /// Address of our end of the link.
    pub(crate) fn gid(&self) -> Gid {
        self.port.gid
    }

    /// MAC address of our end of the link.
    pub(crate) fn mac(&self) -> Mac {
        self.port.mac
    }

    /// The device this link runs over.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.port.device
    }

    pub(crate) fn qp(&self) -> &Qp {
        &self.qp
    }

    /// The group this link serves; `None` once the link is closed.
    pub(crate) fn group(&self) -> Option<Arc<LinkGroup>> {
        self.group.lock().as_ref().cloned()
    }

    /// Connects the queue pair to the peer's, so that both directions work. May sleep.
    pub(crate) fn connect(&self, peer: &RdmaEndpoint, mtu: PathMtu, routed: bool) -> Result {
        let port = &self.port;
        let (dmac, hop_limit) = if routed {
            let route = resolve_dmac(&port.device, port.port, port.gid_index, &peer.gid.0)?;
            (route.dmac, route.hop_limit)
        } else {
            (peer.mac.0, 1)
        };
        self.qp.to_rtr(&RtrAttr {
            dest_qpn: peer.qpn.get(),
            mtu: u32::from(mtu.code()),
            rq_psn: peer.psn.get(),
            port: port.port,
            sgid_index: u8::try_from(port.gid_index)?,
            dgid: peer.gid.0,
            dmac,
            hop_limit,
            traffic_class: 0,
            min_rnr_timer: MIN_RNR_TIMER,
        })?;
        self.qp.to_rts(&RtsAttr {
            timeout: ACK_TIMEOUT,
            retry: RETRY_COUNT,
            rnr_retry: RNR_RETRY,
            sq_psn: self.psn.get(),
        })?;
        self.peer_qpn.store(peer.qpn.get(), Relaxed);
        Ok(())
    }

    /// Number of the peer's queue pair, once the link is connected.
    pub(crate) fn peer_qpn(&self) -> Option<Qpn> {
        Qpn::new(self.peer_qpn.load(Relaxed))
    }

    /// Registers memory so that the peer can write into it. May sleep.
    pub(crate) fn register(&self, mr: &Arc<Mr>) -> Result {
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        self.registrar.register(mr, access, REGISTRATION_MS)
    }

    /// Registers the memory of a send ring, so that work requests can name it as one range. May
    /// sleep.
    pub(crate) fn register_ring(&self, mr: &Arc<Mr>) -> Result {
        self.registrar
            .register(mr, Access::LOCAL_READ, REGISTRATION_MS)
    }

    /// Milliseconds of the monotonic clock when a message last arrived.
    pub(crate) fn heard_at(&self) -> u64 {
        self.heard_at.load(Relaxed)
    }

    /// Stops the link for good: no callback runs after this. The device may still be at a work request
    /// that it had begun, until the queue pair is destroyed, so the link keeps the memory that those
    /// name: `buffers` is the pool of the group. May sleep; called once, by the group's termination.
    pub(crate) fn close(&self, buffers: BufferPool) {
        let nothing = self.buffers.lock().replace(buffers);
        drop(nothing);
        let _ = self.qp.to_error();
        let _ = self.registrar.to_error();
        self.cq.detach();
        let owners = self.tx.lock().close();
        drop(owners);
        let group = self.group.lock().take();
        drop(group);
    }
}

/// A queue pair that is connected to itself and only registers memory.
///
/// On the link's own queue pair a registration would wait behind messages, and software RDMA devices
/// carry it out a second time, and fail, when one of those has to be sent again.
fn new_registrar(pd: &Arc<Pd>, cq: &Arc<Cq<Link>>, port: &PortChoice) -> Result<Arc<Qp>> {
    let caps = QpCaps {
        send_wr: tx::REGISTRATIONS,
        recv_wr: 1,
        send_sge: 1,
        recv_sge: 1,
        inline: 0,
    };
    let qp = Qp::new(pd, cq, cq, caps, None)?;
    qp.to_init(port.port, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    qp.to_rtr(&RtrAttr {
        dest_qpn: qp.qpn(),
        mtu: u32::from(port.mtu.code()),
        rq_psn: 0,
        port: port.port,
        sgid_index: u8::try_from(port.gid_index)?,
        dgid: port.gid.0,
        dmac: port.mac.0,
        hop_limit: 1,
        traffic_class: 0,
        min_rnr_timer: MIN_RNR_TIMER,
    })?;
    qp.to_rts(&RtsAttr {
        timeout: ACK_TIMEOUT,
        retry: 0,
        rnr_retry: 0,
        sq_psn: 0,
    })?;
    Ok(qp)
}

impl CompletionHandler for Link {
    fn complete(&self, completion: &Completion) {
        if self.registrar.complete_registration(completion) {
            return;
        }
        match WrId::decode(completion.wr_id) {
            WrId::Receive(index) => self.received(index, completion),
            WrId::Send(index) => self.sent(index, completion),
            // An unsignalled write completes only with an error.
            WrId::Write => self.failed(completion),
        }
    }
}

impl Link {
    /// A work request failed: the queue pair is in the error state and the link is lost.
    pub(crate) fn failed(&self, completion: &Completion) {
        if let Some(group) = self.group() {
            group.link_error(completion);
        }
    }

    /// A port or the device behind the link changed.
    pub(crate) fn port_event(&self, port: u32, event: PortEvent) {
        let ours = port == u32::from(self.port.port);
        let lost = match event {
            PortEvent::Error => ours,
            PortEvent::Fatal => true,
            _ => false,
        };
        if lost {
            if let Some(group) = self.group() {
                group.link_failed();
            }
        }
    }
}

/// What a completion belongs to, as kept in the work request's 64-bit ID.
#[derive(Clone, Copy)]
pub(crate) enum WrId {
    /// Receive buffer of this index.
    Receive(u32),
    /// Message in the send slot of this index.
    Send(u32),
    /// RDMA write ahead of a message.
    Write,
}

impl WrId {
    pub(crate) const fn encode(self) -> u64 {
        match self {
            WrId::Receive(index) => (1 << 32) | index as u64,
            WrId::Send(index) => (2 << 32) | index as u64,
            WrId::Write => 0,
        }
    }

    const fn decode(id: u64) -> Self {
        // CAST: the low half of the ID is the index.
        let index = id as u32;
        match id >> 32 {
            1 => WrId::Receive(index),
            2 => WrId::Send(index),
            _ => WrId::Write,
        }
    }
}
