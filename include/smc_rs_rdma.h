/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Prototypes of the shims for locking, work queues, pages and RDMA verbs.
 * Included by smc_rs.h.
 */
#ifndef SMC_RS_RDMA_H
#define SMC_RS_RDMA_H

#include <linux/gfp.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

/* One entry of a port's GID table, with what its network device says. */
struct smc_rs_gid {
	u8 gid[16];
	u8 mac[6];
	u16 vlan;		/* 0xffff: none */
	u32 type;		/* enum ib_gid_type */
	int ifindex;
	bool up;
	u64 net_cookie;
};

/* What a PCI device says about itself. */
struct smc_rs_pci {
	u16 vendor;
	u16 device;
	char slot[16];
};

/* Where a RoCE queue pair sends to. */
struct smc_rs_roce_path {
	u8 dgid[16];
	u8 dmac[6];
	u8 hop_limit;
	u8 traffic_class;
	u32 flow_label;
	u32 port;
	u8 sgid_index;
};

/* sync.c */
void smc_rs_helper_spin_lock_bh(spinlock_t *lock);
int smc_rs_helper_spin_trylock_bh(spinlock_t *lock);
void smc_rs_helper_spin_unlock_bh(spinlock_t *lock);
void smc_rs_helper_local_bh_disable(void);
void smc_rs_helper_local_bh_enable(void);
bool smc_rs_helper_in_task(void);
void smc_rs_helper_cond_resched(void);
struct workqueue_struct *
smc_rs_helper_alloc_workqueue(const char *name, unsigned int flags,
			      int max_active);
void smc_rs_helper_flush_workqueue(struct workqueue_struct *wq);

/* mem.c */
struct mem_cgroup;
void smc_rs_helper_payer_get(struct mem_cgroup *payer);
void smc_rs_helper_payer_put(struct mem_cgroup *payer);
struct page *smc_rs_helper_alloc_run(struct mem_cgroup *payer, int nid, gfp_t gfp,
				     unsigned int order);
void smc_rs_helper_free_pages(struct page *page, unsigned int order);
void *smc_rs_helper_page_address(struct page *page);
void *smc_rs_helper_alloc_mapped_run(struct mem_cgroup *payer, int nid, gfp_t gfp,
				     unsigned int count);
void smc_rs_helper_free_mapped_run(void *addr);
void smc_rs_helper_copy(void *to, const void *from, size_t len);
void smc_rs_helper_clear(void *to, size_t len);

/* rdma.c */
void smc_rs_helper_rdma_get_device(struct ib_device *dev);
void smc_rs_helper_rdma_put_device(struct ib_device *dev);
int smc_rs_helper_rdma_node(struct ib_device *dev);
bool smc_rs_helper_rdma_is_software(struct ib_device *dev);
bool smc_rs_helper_rdma_parent(const struct ib_device *dev, char *name, size_t len);
bool smc_rs_helper_rdma_pci(struct ib_device *dev, struct smc_rs_pci *out);
void smc_rs_helper_rdma_event_handler(struct ib_event_handler *h,
				      struct ib_device *dev,
				      void (*fn)(struct ib_event_handler *,
						 struct ib_event *));
int smc_rs_helper_rdma_gid_table_len(struct ib_device *dev, u32 port);
bool smc_rs_helper_rdma_port_is_roce(struct ib_device *dev, u32 port);
int smc_rs_helper_rdma_gid(struct ib_device *dev, u32 port, int index,
			   struct smc_rs_gid *out);
bool smc_rs_helper_rdma_gid_below(struct ib_device *dev, u32 port, int index,
				  const struct net *net, int ifindex);
struct ib_pd *smc_rs_helper_rdma_alloc_pd(struct ib_device *dev);
struct ib_cq *smc_rs_helper_rdma_create_cq(struct ib_device *dev,
					   ib_comp_handler handler, void *ctx,
					   unsigned int cqe, u32 vector);
int smc_rs_helper_rdma_poll_cq(struct ib_cq *cq, int num, struct ib_wc *wc);
int smc_rs_helper_rdma_arm_cq(struct ib_cq *cq);
struct ib_qp *smc_rs_helper_rdma_create_qp(struct ib_pd *pd,
					   struct ib_qp_init_attr *attr);
void smc_rs_helper_rdma_set_roce_path(struct rdma_ah_attr *ah,
				      const struct smc_rs_roce_path *path);
int smc_rs_helper_rdma_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
				 const struct ib_send_wr **bad);
int smc_rs_helper_rdma_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
				 const struct ib_recv_wr **bad);
int smc_rs_helper_rdma_map_mr(struct ib_mr *mr, u64 addr, unsigned int len);
int smc_rs_helper_rdma_map_mr_scattered(struct ib_mr *mr,
					const struct sg_table *table,
					unsigned int len);
int smc_rs_helper_rdma_scatter_map(struct ib_device *dev, const void *addr,
				   size_t len, int dir, struct sg_table *table);
void smc_rs_helper_rdma_scatter_unmap(struct ib_device *dev,
				      struct sg_table *table, int dir);
void smc_rs_helper_rdma_scatter_sync_for_cpu(struct ib_device *dev,
					     struct sg_table *table, int dir);
void smc_rs_helper_rdma_scatter_sync_for_device(struct ib_device *dev,
						struct sg_table *table, int dir);
bool smc_rs_helper_rdma_scatter_needs_sync(struct ib_device *dev,
					   struct sg_table *table);
u64 smc_rs_helper_rdma_dma_map(struct ib_device *dev, void *addr, size_t len,
			       int dir);
int smc_rs_helper_rdma_dma_error(struct ib_device *dev, u64 addr);
void smc_rs_helper_rdma_dma_unmap(struct ib_device *dev, u64 addr, size_t len,
				  int dir);
void smc_rs_helper_rdma_sync_for_cpu(struct ib_device *dev, u64 addr,
				     size_t len, int dir);
void smc_rs_helper_rdma_sync_for_device(struct ib_device *dev, u64 addr,
					size_t len, int dir);
bool smc_rs_helper_rdma_needs_sync(struct ib_device *dev, u64 addr);
void smc_rs_helper_rdma_gid_to_addr(const u8 *gid, struct sockaddr *out);

#endif
