// SPDX-License-Identifier: GPL-2.0
/* The trace points, and functions that pass them. */
#define CREATE_TRACE_POINTS
#include "smc_rs_trace.h"
#include "smc_rs.h"

void smc_rs_helper_trace_fallback(const struct sock *sk, const struct sock *tcp, u64 net_cookie,
				  int reason)
{
	trace_smc_switch_to_fallback(sk, tcp, net_cookie, reason);
}

void smc_rs_helper_trace_sendmsg(const struct sock *sk, u64 net_cookie, size_t len,
				 const char *device)
{
	trace_smc_tx_sendmsg(sk, net_cookie, len, device);
}

void smc_rs_helper_trace_recvmsg(const struct sock *sk, u64 net_cookie, size_t len,
				 const char *device)
{
	trace_smc_rx_recvmsg(sk, net_cookie, len, device);
}

void smc_rs_helper_trace_link_down(u32 group, u64 net_cookie, int state, const char *device,
				   const char *why)
{
	trace_smcr_link_down(group, net_cookie, state, device, why);
}

void smc_rs_helper_trace_handshake_step(const struct sock *sk, u64 net_cookie, bool server,
					u8 step, u64 us)
{
	trace_smc_handshake_step(sk, net_cookie, server, step, us);
}

void smc_rs_helper_trace_handshake_end(const struct sock *sk, u64 net_cookie, bool server,
				       u8 result, u32 reason, u32 peer_reason, int error, u64 us)
{
	trace_smc_handshake_end(sk, net_cookie, server, result, reason, peer_reason, error, us);
}
