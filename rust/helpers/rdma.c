// SPDX-License-Identifier: GPL-2.0
/* Shims for the inline functions and macros of the RDMA verbs headers. */
#include <linux/if_vlan.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "smc_rs.h"

void smc_rs_helper_rdma_get_device(struct ib_device *dev)
{
	get_device(&dev->dev);
}

void smc_rs_helper_rdma_put_device(struct ib_device *dev)
{
	put_device(&dev->dev);
}

bool smc_rs_helper_rdma_pci(struct ib_device *dev, struct smc_rs_pci *out)
{
	struct pci_dev *pci;

	/* Software devices have no parent, or one that is not on the bus. */
	if (!dev->dev.parent || !dev_is_pci(dev->dev.parent))
		return false;
	pci = to_pci_dev(dev->dev.parent);
	out->vendor = pci->vendor;
	out->device = pci->device;
	strscpy_pad(out->slot, pci_name(pci), sizeof(out->slot));
	return true;
}

bool smc_rs_helper_rdma_parent(const struct ib_device *dev, char *name, size_t len)
{
	if (!dev->dev.parent)
		return false;
	strscpy_pad(name, dev_name(dev->dev.parent), len);
	return true;
}

int smc_rs_helper_rdma_node(struct ib_device *dev)
{
	return ibdev_to_node(dev);
}

/* Drivers without hardware take kernel addresses instead of bus addresses. */
bool smc_rs_helper_rdma_is_software(struct ib_device *dev)
{
	return ib_uses_virt_dma(dev);
}

void smc_rs_helper_rdma_event_handler(struct ib_event_handler *h,
				      struct ib_device *dev,
				      void (*fn)(struct ib_event_handler *,
						 struct ib_event *))
{
	INIT_IB_EVENT_HANDLER(h, dev, fn);
}

int smc_rs_helper_rdma_gid_table_len(struct ib_device *dev, u32 port)
{
	if (!rdma_is_port_valid(dev, port))
		return 0;
	return dev->port_data[port].immutable.gid_tbl_len;
}

bool smc_rs_helper_rdma_port_is_roce(struct ib_device *dev, u32 port)
{
	return rdma_is_port_valid(dev, port) && rdma_protocol_roce(dev, port);
}

/* The net_device behind a GID may go away at any time: read it under RCU. */
int smc_rs_helper_rdma_gid(struct ib_device *dev, u32 port, int index,
			   struct smc_rs_gid *out)
{
	const struct ib_gid_attr *attr = rdma_get_gid_attr(dev, port, index);
	struct net_device *ndev;
	int ret = 0;

	if (IS_ERR(attr))
		return PTR_ERR(attr);

	memset(out, 0, sizeof(*out));
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (IS_ERR(ndev)) {
		ret = PTR_ERR(ndev);
	} else {
		memcpy(out->gid, attr->gid.raw, sizeof(out->gid));
		out->type = attr->gid_type;
		out->ifindex = ndev->ifindex;
		out->net_cookie = dev_net(ndev)->net_cookie;
		out->up = netif_running(ndev) && netif_carrier_ok(ndev);
		ret = rdma_read_gid_l2_fields(attr, &out->vlan, out->mac);
	}
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	return ret;
}

struct ib_pd *smc_rs_helper_rdma_alloc_pd(struct ib_device *dev)
{
	return ib_alloc_pd(dev, 0);
}

struct ib_cq *smc_rs_helper_rdma_create_cq(struct ib_device *dev,
					   ib_comp_handler handler, void *ctx,
					   unsigned int cqe, u32 vector)
{
	struct ib_cq_init_attr attr = {
		.cqe = cqe,
		.comp_vector = vector % max(dev->num_comp_vectors, 1),
	};

	return ib_create_cq(dev, handler, NULL, ctx, &attr);
}

int smc_rs_helper_rdma_poll_cq(struct ib_cq *cq, int num, struct ib_wc *wc)
{
	return ib_poll_cq(cq, num, wc);
}

int smc_rs_helper_rdma_arm_cq(struct ib_cq *cq)
{
	return ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
}

struct ib_qp *smc_rs_helper_rdma_create_qp(struct ib_pd *pd,
					   struct ib_qp_init_attr *attr)
{
	return ib_create_qp(pd, attr);
}

void smc_rs_helper_rdma_set_roce_path(struct rdma_ah_attr *ah,
				      const struct smc_rs_roce_path *path)
{
	union ib_gid dgid;

	memset(ah, 0, sizeof(*ah));
	memcpy(dgid.raw, path->dgid, sizeof(dgid.raw));
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, path->port);
	rdma_ah_set_grh(ah, &dgid, path->flow_label, path->sgid_index,
			path->hop_limit, path->traffic_class);
	memcpy(ah->roce.dmac, path->dmac, sizeof(path->dmac));
}

int smc_rs_helper_rdma_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
				 const struct ib_send_wr **bad)
{
	return ib_post_send(qp, wr, bad);
}

int smc_rs_helper_rdma_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
				 const struct ib_recv_wr **bad)
{
	return ib_post_recv(qp, wr, bad);
}

/* One address range for the peer, out of all entries of a list or of nothing. */
static int map_mr(struct ib_mr *mr, struct scatterlist *sg, int entries,
		  unsigned int len)
{
	int n = ib_map_mr_sg(mr, sg, entries, NULL, PAGE_SIZE);

	if (n < 0)
		return n;
	return n == entries && mr->length == len ? 0 : -EINVAL;
}

/* One contiguous run is one scatterlist entry, whatever its length. */
int smc_rs_helper_rdma_map_mr(struct ib_mr *mr, u64 addr, unsigned int len)
{
	struct scatterlist sg;

	sg_init_table(&sg, 1);
	sg_dma_address(&sg) = addr;
	sg_dma_len(&sg) = len;
	sg.length = len;
	return map_mr(mr, &sg, 1, len);
}

int smc_rs_helper_rdma_map_mr_scattered(struct ib_mr *mr,
					const struct sg_table *table,
					unsigned int len)
{
	return map_mr(mr, table->sgl, table->nents, len);
}

u64 smc_rs_helper_rdma_dma_map(struct ib_device *dev, void *addr, size_t len,
			       int dir)
{
	return ib_dma_map_single(dev, addr, len, dir);
}

int smc_rs_helper_rdma_dma_error(struct ib_device *dev, u64 addr)
{
	return ib_dma_mapping_error(dev, addr);
}

void smc_rs_helper_rdma_dma_unmap(struct ib_device *dev, u64 addr, size_t len,
				  int dir)
{
	ib_dma_unmap_single(dev, addr, len, dir);
}

void smc_rs_helper_rdma_sync_for_cpu(struct ib_device *dev, u64 addr,
				     size_t len, int dir)
{
	ib_dma_sync_single_for_cpu(dev, addr, len, dir);
}

void smc_rs_helper_rdma_sync_for_device(struct ib_device *dev, u64 addr,
					size_t len, int dir)
{
	ib_dma_sync_single_for_device(dev, addr, len, dir);
}

/* Software devices and coherent machines need no synchronisation at all. */
bool smc_rs_helper_rdma_needs_sync(struct ib_device *dev, u64 addr)
{
	return !ib_uses_virt_dma(dev) && dma_need_sync(dev->dma_device, addr);
}

/* Pages that happen to follow each other become one entry. */
int smc_rs_helper_rdma_scatter_map(struct ib_device *dev, const void *addr,
				   size_t len, int dir, struct sg_table *table)
{
	unsigned int i, count = len >> PAGE_SHIFT;
	struct page **pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL);
	int ret;

	if (!pages)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		pages[i] = vmalloc_to_page(addr + (size_t)i * PAGE_SIZE);
	ret = sg_alloc_table_from_pages_segment(table, pages, count, 0, len,
						ib_dma_max_seg_size(dev),
						GFP_KERNEL);
	kvfree(pages);
	if (ret)
		return ret;
	ret = ib_dma_map_sgtable_attrs(dev, table, dir, 0);
	if (ret)
		sg_free_table(table);
	return ret;
}

void smc_rs_helper_rdma_scatter_unmap(struct ib_device *dev,
				      struct sg_table *table, int dir)
{
	ib_dma_unmap_sgtable_attrs(dev, table, dir, 0);
	sg_free_table(table);
}

/* The two below are for tables of which some entry needs synchronisation. */
void smc_rs_helper_rdma_scatter_sync_for_cpu(struct ib_device *dev,
					     struct sg_table *table, int dir)
{
	dma_sync_sgtable_for_cpu(dev->dma_device, table, dir);
}

void smc_rs_helper_rdma_scatter_sync_for_device(struct ib_device *dev,
						struct sg_table *table, int dir)
{
	dma_sync_sgtable_for_device(dev->dma_device, table, dir);
}

bool smc_rs_helper_rdma_scatter_needs_sync(struct ib_device *dev,
					   struct sg_table *table)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(table, sg, i)
		if (smc_rs_helper_rdma_needs_sync(dev, sg_dma_address(sg)))
			return true;
	return false;
}

void smc_rs_helper_rdma_gid_to_addr(const u8 *gid, struct sockaddr *out)
{
	union ib_gid raw;

	memcpy(raw.raw, gid, sizeof(raw.raw));
	rdma_gid2ip(out, &raw);
}
