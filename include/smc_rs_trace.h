/* SPDX-License-Identifier: GPL-2.0 */
/* Trace points. Read several times over, by the kernel's trace machinery. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM smc

#if !defined(SMC_RS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SMC_RS_TRACE_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/sock.h>

TRACE_EVENT(smc_switch_to_fallback,
	TP_PROTO(const struct sock *sk, const struct sock *clcsk, u64 net_cookie,
		 int fallback_rsn),
	TP_ARGS(sk, clcsk, net_cookie, fallback_rsn),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(const void *, clcsk)
		__field(u64, net_cookie)
		__field(int, fallback_rsn)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->clcsk = clcsk;
		__entry->net_cookie = net_cookie;
		__entry->fallback_rsn = fallback_rsn;
	),
	TP_printk("sk=%p clcsk=%p net=%llu fallback_rsn=%d", __entry->sk, __entry->clcsk,
		  __entry->net_cookie, __entry->fallback_rsn)
);

DECLARE_EVENT_CLASS(smc_msg_event,
	TP_PROTO(const struct sock *sk, u64 net_cookie, size_t len, const char *name),
	TP_ARGS(sk, net_cookie, len, name),
	TP_STRUCT__entry(
		__field(const void *, smc)
		__field(u64, net_cookie)
		__field(size_t, len)
		__string(name, name)
	),
	TP_fast_assign(
		__entry->smc = sk;
		__entry->net_cookie = net_cookie;
		__entry->len = len;
		__assign_str(name);
	),
	TP_printk("smc=%p net=%llu len=%zu dev=%s", __entry->smc, __entry->net_cookie,
		  __entry->len, __get_str(name))
);

DEFINE_EVENT(smc_msg_event, smc_tx_sendmsg,
	TP_PROTO(const struct sock *sk, u64 net_cookie, size_t len, const char *name),
	TP_ARGS(sk, net_cookie, len, name)
);

DEFINE_EVENT(smc_msg_event, smc_rx_recvmsg,
	TP_PROTO(const struct sock *sk, u64 net_cookie, size_t len, const char *name),
	TP_ARGS(sk, net_cookie, len, name)
);

TRACE_EVENT(smcr_link_down,
	TP_PROTO(u32 lgr, u64 net_cookie, int state, const char *name, const char *why),
	TP_ARGS(lgr, net_cookie, state, name, why),
	TP_STRUCT__entry(
		__field(u32, lgr)
		__field(u64, net_cookie)
		__field(int, state)
		__string(name, name)
		__string(why, why)
	),
	TP_fast_assign(
		__entry->lgr = lgr;
		__entry->net_cookie = net_cookie;
		__entry->state = state;
		__assign_str(name);
		__assign_str(why);
	),
	TP_printk("lgr=%08x net=%llu state=%d dev=%s why=%s", __entry->lgr,
		  __entry->net_cookie, __entry->state, __get_str(name), __get_str(why))
);

/* The socket of a handshake is the TCP socket, which is there before the program's. */
TRACE_EVENT(smc_handshake_step,
	TP_PROTO(const struct sock *sk, u64 net_cookie, bool server, u8 step, u64 us),
	TP_ARGS(sk, net_cookie, server, step, us),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(u64, net_cookie)
		__field(u64, us)
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, server)
		__field(u8, step)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->net_cookie = net_cookie;
		__entry->us = us;
		__entry->sport = inet_sk(sk)->inet_num;
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->server = server;
		__entry->step = step;
	),
	TP_printk("sk=%p net=%llu sport=%u dport=%u side=%s step=%s us=%llu", __entry->sk,
		  __entry->net_cookie, __entry->sport, __entry->dport,
		  __print_symbolic(__entry->server, { 0, "client" }, { 1, "server" }),
		  __print_symbolic(__entry->step, { 1, "proposal" }, { 2, "first_contact" },
				   { 3, "join" }, { 4, "accept" }, { 5, "confirm" },
				   { 6, "confirm_link" }),
		  __entry->us)
);

TRACE_EVENT(smc_handshake_end,
	TP_PROTO(const struct sock *sk, u64 net_cookie, bool server, u8 result, u32 reason,
		 u32 peer_reason, int error, u64 us),
	TP_ARGS(sk, net_cookie, server, result, reason, peer_reason, error, us),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(u64, net_cookie)
		__field(u64, us)
		__field(u32, reason)
		__field(u32, peer_reason)
		__field(int, error)
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, server)
		__field(u8, result)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->net_cookie = net_cookie;
		__entry->us = us;
		__entry->reason = reason;
		__entry->peer_reason = peer_reason;
		__entry->error = error;
		__entry->sport = inet_sk(sk)->inet_num;
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->server = server;
		__entry->result = result;
	),
	TP_printk("sk=%p net=%llu sport=%u dport=%u side=%s result=%s us=%llu reason=0x%08x peer_reason=0x%08x error=%d",
		  __entry->sk, __entry->net_cookie, __entry->sport, __entry->dport,
		  __print_symbolic(__entry->server, { 0, "client" }, { 1, "server" }),
		  __print_symbolic(__entry->result, { 1, "smcr" }, { 2, "tcp" }, { 3, "reset" }),
		  __entry->us, __entry->reason, __entry->peer_reason, __entry->error)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE smc_rs_trace
#include <trace/define_trace.h>
