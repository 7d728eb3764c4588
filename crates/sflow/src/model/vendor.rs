//! Counter records that vendors defined under their own enterprise numbers.

use crate::value::record;

record! {
    /// Table use of a Broadcom switch chip (enterprise 4413).
    BroadcomTables {
        host_entries: u32 = "bcm_asic_host_entries",
        host_entries_max: u32 = "bcm_host_entries_max",
        ipv4_entries: u32 = "bcm_ipv4_entries",
        ipv4_entries_max: u32 = "bcm_ipv4_entries_max",
        ipv6_entries: u32 = "bcm_ipv6_entries",
        ipv6_entries_max: u32 = "bcm_ipv6_entries_max",
        ipv4_ipv6_entries: u32 = "bcm_ipv4_ipv6_entries",
        ipv4_ipv6_entries_max: u32 = "bcm_ipv4_ipv6_entries_max",
        long_ipv6_entries: u32 = "bcm_long_ipv6_entries",
        long_ipv6_entries_max: u32 = "bcm_long_ipv6_entries_max",
        routes: u32 = "bcm_total_routes",
        routes_max: u32 = "bcm_total_routes_max",
        ecmp_nexthops: u32 = "bcm_ecmp_nexthops",
        ecmp_nexthops_max: u32 = "bcm_ecmp_nexthops_max",
        mac_entries: u32 = "bcm_mac_entries",
        mac_entries_max: u32 = "bcm_mac_entries_max",
        ipv4_neighbors: u32 = "bcm_ipv4_neighbors",
        ipv6_neighbors: u32 = "bcm_ipv6_neighbors",
        ipv4_routes: u32 = "bcm_ipv4_routes",
        ipv6_routes: u32 = "bcm_ipv6_routes",
        acl_in_entries: u32 = "bcm_acl_ingress_entries",
        acl_in_entries_max: u32 = "bcm_acl_ingress_entries_max",
        acl_in_counters: u32 = "bcm_acl_ingress_counters",
        acl_in_counters_max: u32 = "bcm_acl_ingress_counters_max",
        acl_in_meters: u32 = "bcm_acl_ingress_meters",
        acl_in_meters_max: u32 = "bcm_acl_ingress_meters_max",
        acl_in_slices: u32 = "bcm_acl_ingress_slices",
        acl_in_slices_max: u32 = "bcm_acl_ingress_slices_max",
        acl_out_entries: u32 = "bcm_acl_egress_entries",
        acl_out_entries_max: u32 = "bcm_acl_egress_entries_max",
        acl_out_counters: u32 = "bcm_acl_egress_counters",
        acl_out_counters_max: u32 = "bcm_acl_egress_counters_max",
        acl_out_meters: u32 = "bcm_acl_egress_meters",
        acl_out_meters_max: u32 = "bcm_acl_egress_meters_max",
        acl_out_slices: u32 = "bcm_acl_egress_slices",
        acl_out_slices_max: u32 = "bcm_acl_egress_slices_max",
    }
}

record! {
    /// NVIDIA graphics processors of a host (enterprise 5703).
    NvidiaGpu {
        devices: u32 = "nvml_device_count",
        processes: u32 = "nvml_processes",
        /// Milliseconds.
        gpu_time: u32 = "nvml_gpu_mS",
        /// Milliseconds.
        memory_time: u32 = "nvml_mem_mS",
        /// Bytes.
        memory_total: u64 = "nvml_mem_bytes_total",
        /// Bytes.
        memory_free: u64 = "nvml_mem_bytes_free",
        ecc_errors: u32 = "nvml_ecc_errors",
        /// Millijoules.
        energy: u32 = "nvml_energy_mJ",
        /// Degrees Celsius.
        temperature: u32 = "nvml_temperature_C",
        /// Percent.
        fan_speed: u32 = "nvml_fan_speed_pc",
    }
}
