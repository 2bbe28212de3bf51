// SPDX-License-Identifier: GPL-2.0

//! The states of a queue pair, and what each step needs to know.

use super::mr::Access;
use crate::sys;
use kernel::ffi::c_int;
use kernel::prelude::*;

/// The state of a reliably connected queue pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub enum QpState {
    /// As created.
    Reset,
    /// Receive work requests can be posted.
    Init,
    /// Ready to receive: the path to the peer is known.
    Rtr,
    /// Ready to send.
    Rts,
    /// All outstanding work requests are flushed, and new ones too.
    Error,
}

/// What the step to "ready to receive" needs: mostly what the peer said of itself.
#[derive(Clone, Copy, Debug)]
pub struct RtrAttr {
    /// The peer's queue pair number.
    pub dest_qpn: u32,
    /// The path's MTU as the code 1 (256 bytes) to 5 (4096 bytes).
    pub mtu: u32,
    /// The number of the peer's first packet.
    pub rq_psn: u32,
    /// The index of the local GID in the port's table.
    pub sgid_index: u8,
    /// The peer's GID.
    pub dgid: [u8; 16],
    /// The MAC address of the next hop towards the peer.
    pub dmac: [u8; 6],
    /// The hop limit (time to live) of packets.
    pub hop_limit: u8,
    /// The traffic class of packets.
    pub traffic_class: u8,
    /// The local port.
    pub port: u8,
    /// The code of the pause the peer makes when there is no receive work request, 0 to 31.
    pub min_rnr_timer: u8,
}

/// What the step to "ready to send" needs.
#[derive(Clone, Copy, Debug)]
pub struct RtsAttr {
    /// The code of the time to wait for an acknowledgement: 4.096 µs times 2 to its power.
    pub timeout: u8,
    /// How often to send again without an acknowledgement, 0 to 7. Software devices (rxe) take 7 for
    /// "for ever": a silent peer is then never noticed.
    pub retry: u8,
    /// How often to send again when the peer has no receive work request; 7 is for ever.
    pub rnr_retry: u8,
    /// The number of the first packet.
    pub sq_psn: u32,
}

/// The C attributes of a queue pair, kept for reuse because they are too large for the stack.
pub(super) struct Attributes {
    state: QpState,
    raw: KBox<sys::ib_qp_attr>,
}

// SAFETY: The pointers within are only set by the core, for the time of a call.
unsafe impl Send for Attributes {}

impl Attributes {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            state: QpState::Reset,
            raw: KBox::zeroed(GFP_KERNEL)?,
        })
    }

    pub(super) fn state(&self) -> QpState {
        self.state
    }

    /// Changes `qp` from "reset" to "initialised".
    ///
    /// # Safety
    ///
    /// `qp` must be the live queue pair these attributes belong to.
    pub(super) unsafe fn init(&mut self, qp: *mut sys::ib_qp, port: u8, access: Access) -> Result {
        let attr = self.begin(QpState::Reset)?;
        attr.qp_state = sys::ib_qp_state_IB_QPS_INIT;
        attr.port_num = port.into();
        attr.qp_access_flags = access.as_raw();
        let mask = sys::ib_qp_attr_mask_IB_QP_STATE
            | sys::ib_qp_attr_mask_IB_QP_PKEY_INDEX
            | sys::ib_qp_attr_mask_IB_QP_PORT
            | sys::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS;
        // SAFETY: As promised by the caller; the attributes that `mask` names are filled in.
        unsafe { self.modify(qp, mask, QpState::Init) }
    }

    /// Changes `qp` from "initialised" to "ready to receive".
    ///
    /// # Safety
    ///
    /// `qp` must be the live queue pair these attributes belong to.
    pub(super) unsafe fn rtr(&mut self, qp: *mut sys::ib_qp, to: &RtrAttr) -> Result {
        let attr = self.begin(QpState::Init)?;
        attr.qp_state = sys::ib_qp_state_IB_QPS_RTR;
        attr.path_mtu = to.mtu;
        attr.dest_qp_num = to.dest_qpn;
        attr.rq_psn = to.rq_psn;
        attr.max_dest_rd_atomic = 1;
        attr.min_rnr_timer = to.min_rnr_timer;
        let path = sys::smc_rs_roce_path {
            dgid: to.dgid,
            dmac: to.dmac,
            hop_limit: to.hop_limit,
            traffic_class: to.traffic_class,
            flow_label: 0,
            port: to.port.into(),
            sgid_index: to.sgid_index,
        };
        // SAFETY: Both are valid structures of this function's own.
        unsafe { sys::smc_rs_helper_rdma_set_roce_path(&mut attr.ah_attr, &path) };
        let mask = sys::ib_qp_attr_mask_IB_QP_STATE
            | sys::ib_qp_attr_mask_IB_QP_AV
            | sys::ib_qp_attr_mask_IB_QP_PATH_MTU
            | sys::ib_qp_attr_mask_IB_QP_DEST_QPN
            | sys::ib_qp_attr_mask_IB_QP_RQ_PSN
            | sys::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC
            | sys::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER;
        // SAFETY: As promised by the caller; the attributes that `mask` names are filled in.
        unsafe { self.modify(qp, mask, QpState::Rtr) }
    }

    /// Changes `qp` from "ready to receive" to "ready to send".
    ///
    /// # Safety
    ///
    /// `qp` must be the live queue pair these attributes belong to.
    pub(super) unsafe fn rts(&mut self, qp: *mut sys::ib_qp, to: &RtsAttr) -> Result {
        let attr = self.begin(QpState::Rtr)?;
        attr.qp_state = sys::ib_qp_state_IB_QPS_RTS;
        attr.timeout = to.timeout;
        attr.retry_cnt = to.retry;
        attr.rnr_retry = to.rnr_retry;
        attr.sq_psn = to.sq_psn;
        attr.max_rd_atomic = 1;
        let mask = sys::ib_qp_attr_mask_IB_QP_STATE
            | sys::ib_qp_attr_mask_IB_QP_TIMEOUT
            | sys::ib_qp_attr_mask_IB_QP_RETRY_CNT
            | sys::ib_qp_attr_mask_IB_QP_RNR_RETRY
            | sys::ib_qp_attr_mask_IB_QP_SQ_PSN
            | sys::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC;
        // SAFETY: As promised by the caller; the attributes that `mask` names are filled in.
        unsafe { self.modify(qp, mask, QpState::Rts) }
    }

    /// Changes `qp` from any state to "error".
    ///
    /// # Safety
    ///
    /// `qp` must be the live queue pair these attributes belong to.
    pub(super) unsafe fn error(&mut self, qp: *mut sys::ib_qp) -> Result {
        if self.state == QpState::Error {
            return Ok(());
        }
        let attr = self.begin(self.state)?;
        attr.qp_state = sys::ib_qp_state_IB_QPS_ERR;
        // SAFETY: As promised by the caller; the attributes that `mask` names are filled in.
        unsafe { self.modify(qp, sys::ib_qp_attr_mask_IB_QP_STATE, QpState::Error) }
    }

    /// Cleared attributes for a step from the state `from`, if that is the present one.
    fn begin(&mut self, from: QpState) -> Result<&mut sys::ib_qp_attr> {
        if self.state != from {
            return Err(EINVAL);
        }
        // SAFETY: All-zero is a valid value of the structure.
        unsafe { (&raw mut *self.raw).write_bytes(0, 1) };
        Ok(&mut self.raw)
    }

    /// # Safety
    ///
    /// `qp` must be the live queue pair these attributes belong to, and what `mask` names must be
    /// filled in.
    unsafe fn modify(&mut self, qp: *mut sys::ib_qp, mask: u32, to: QpState) -> Result {
        // SAFETY: As promised by the caller.
        let ret = unsafe { sys::ib_modify_qp(qp, &mut *self.raw, mask as c_int) };
        kernel::error::to_result(ret)?;
        self.state = to;
        Ok(())
    }
}
