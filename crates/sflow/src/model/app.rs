//! Counter records of applications (sFlow Application Structures, HTTP, memcache, Java).

use crate::value::{Text, record};

record! {
    /// A Java virtual machine.
    JavaRuntime<'a> {
        name: Text<'a> = "jvm_name",
        vendor: Text<'a> = "jvm_vendor",
        version: Text<'a> = "jvm_version",
    }
}

record! {
    /// Statistics of a Java virtual machine; memory in bytes, times in milliseconds.
    JavaStatistics {
        heap_initial: u64 = "heap_mem_initial",
        heap_used: u64 = "heap_mem_used",
        heap_committed: u64 = "heap_mem_committed",
        heap_max: u64 = "heap_mem_max",
        non_heap_initial: u64 = "non_heap_mem_initial",
        non_heap_used: u64 = "non_heap_mem_used",
        non_heap_committed: u64 = "non_heap_mem_committed",
        non_heap_max: u64 = "non_heap_mem_max",
        gc_count: u32 = "gc_count",
        gc_time: u32 = "gc_mS",
        classes_loaded: u32 = "classes_loaded",
        classes_total: u32 = "classes_total",
        classes_unloaded: u32 = "classes_unloaded",
        compilation_time: u32 = "compilation_mS",
        threads_live: u32 = "threads_live",
        threads_daemon: u32 = "threads_daemon",
        threads_started: u32 = "threads_started",
        fds_open: Option<u32> = "fds_open",
        fds_max: Option<u32> = "fds_max",
    }
}

record! {
    /// Memcache counters, deprecated form.
    MemcacheCountersOld {
        uptime: u32 = "memcache_uptime",
        rusage_user: u32 = "memcache_rusage_user",
        rusage_system: u32 = "memcache_rusage_system",
        current_connections: u32 = "memcache_curr_connections",
        total_connections: u32 = "memcache_total_connections",
        connection_structures: u32 = "memcache_connection_structures",
        cmd_get: u32 = "memcache_cmd_get",
        cmd_set: u32 = "memcache_cmd_set",
        cmd_flush: u32 = "memcache_cmd_flush",
        get_hits: u32 = "memcache_get_hits",
        get_misses: u32 = "memcache_get_misses",
        delete_misses: u32 = "memcache_delete_misses",
        delete_hits: u32 = "memcache_delete_hits",
        incr_misses: u32 = "memcache_incr_misses",
        incr_hits: u32 = "memcache_incr_hits",
        decr_misses: u32 = "memcache_decr_misses",
        decr_hits: u32 = "memcache_decr_hits",
        cas_misses: u32 = "memcache_cas_misses",
        cas_hits: u32 = "memcache_cas_hits",
        cas_badval: u32 = "memcache_cas_badval",
        auth_cmds: u32 = "memcache_auth_cmds",
        auth_errors: u32 = "memcache_auth_errors",
        bytes_read: u64 = "memcache_bytes_read",
        bytes_written: u64 = "memcache_bytes_written",
        limit_maxbytes: u32 = "memcache_limit_maxbytes",
        accepting_conns: u32 = "memcache_accepting_conns",
        listen_disabled: u32 = "memcache_listen_disabled_num",
        threads: u32 = "memcache_threads",
        conn_yields: u32 = "memcache_conn_yields",
        bytes: u64 = "memcache_bytes",
        current_items: u32 = "memcache_curr_items",
        total_items: u32 = "memcache_total_items",
        evictions: u32 = "memcache_evictions",
    }
}

record! {
    /// Memcache counters.
    MemcacheCounters {
        cmd_set: u32 = "memcache_cmd_set",
        cmd_touch: u32 = "memcache_cmd_touch",
        cmd_flush: u32 = "memcache_cmd_flush",
        get_hits: u32 = "memcache_get_hits",
        get_misses: u32 = "memcache_get_misses",
        delete_hits: u32 = "memcache_delete_hits",
        delete_misses: u32 = "memcache_delete_misses",
        incr_hits: u32 = "memcache_incr_hits",
        incr_misses: u32 = "memcache_incr_misses",
        decr_hits: u32 = "memcache_decr_hits",
        decr_misses: u32 = "memcache_decr_misses",
        cas_hits: u32 = "memcache_cas_hits",
        cas_misses: u32 = "memcache_cas_misses",
        cas_badval: u32 = "memcache_cas_badval",
        auth_cmds: u32 = "memcache_auth_cmds",
        auth_errors: u32 = "memcache_auth_errors",
        threads: u32 = "memcache_threads",
        conn_yields: u32 = "memcache_conn_yields",
        listen_disabled: u32 = "memcache_listen_disabled_num",
        current_connections: u32 = "memcache_curr_connections",
        rejected_connections: u32 = "memcache_rejected_connections",
        total_connections: u32 = "memcache_total_connections",
        connection_structures: u32 = "memcache_connection_structures",
        evictions: u32 = "memcache_evictions",
        reclaimed: u32 = "memcache_reclaimed",
        current_items: u32 = "memcache_curr_items",
        total_items: u32 = "memcache_total_items",
        bytes_read: u64 = "memcache_bytes_read",
        bytes_written: u64 = "memcache_bytes_written",
        bytes: u64 = "memcache_bytes",
        limit_maxbytes: u64 = "memcache_limit_maxbytes",
    }
}

record! {
    /// HTTP server counters. The name of the CONNECT counter is misspelt in sflowtool, and scripts
    /// know it by that name.
    HttpCounters {
        option: u32 = "http_method_option_count",
        get: u32 = "http_method_get_count",
        head: u32 = "http_method_head_count",
        post: u32 = "http_method_post_count",
        put: u32 = "http_method_put_count",
        delete: u32 = "http_method_delete_count",
        trace: u32 = "http_method_trace_count",
        connect: u32 = "http_methd_connect_count",
        other: u32 = "http_method_other_count",
        status_1xx: u32 = "http_status_1XX_count",
        status_2xx: u32 = "http_status_2XX_count",
        status_3xx: u32 = "http_status_3XX_count",
        status_4xx: u32 = "http_status_4XX_count",
        status_5xx: u32 = "http_status_5XX_count",
        status_other: u32 = "http_status_other_count",
    }
}

record! {
    /// Operations of an application, by outcome.
    AppCounters<'a> {
        application: Text<'a> = "application",
        ok: u32 = "status_OK",
        other: u32 = "errors_OTHER",
        timeout: u32 = "errors_TIMEOUT",
        internal_error: u32 = "errors_INTERNAL_ERROR",
        bad_request: u32 = "errors_BAD_REQUEST",
        forbidden: u32 = "errors_FORBIDDEN",
        too_large: u32 = "errors_TOO_LARGE",
        not_implemented: u32 = "errors_NOT_IMPLEMENTED",
        not_found: u32 = "errors_NOT_FOUND",
        unavailable: u32 = "errors_UNAVAILABLE",
        unauthorized: u32 = "errors_UNAUTHORIZED",
    }
}

record! {
    /// Resources of an application; times in milliseconds, memory in bytes.
    AppResources {
        user_time: u32 = "user_time",
        system_time: u32 = "system_time",
        memory_used: u64 = "memory_used",
        memory_max: u64 = "memory_max",
        files_open: u32 = "files_open",
        files_max: u32 = "files_max",
        connections_open: u32 = "connections_open",
        connections_max: u32 = "connections_max",
    }
}

record! {
    /// Workers of an application.
    AppWorkers {
        active: u32 = "workers_active",
        idle: u32 = "workers_idle",
        max: u32 = "workers_max",
        delayed: u32 = "requests_delayed",
        dropped: u32 = "requests_dropped",
    }
}

record! {
    /// A virtual desktop.
    VdiCounters {
        sessions_current: u32 = "vdi_sessions_current",
        sessions_total: u32 = "vdi_sessions_total",
        sessions_duration: u32 = "vdi_sessions_duration",
        rx_bytes: u32 = "vdi_rx_bytes",
        tx_bytes: u32 = "vdi_tx_bytes",
        rx_packets: u32 = "vdi_rx_packets",
        tx_packets: u32 = "vdi_tx_packets",
        rx_packets_lost: u32 = "vdi_rx_packets_lost",
        tx_packets_lost: u32 = "vdi_tx_packets_lost",
        rtt_min: u32 = "vdi_rtt_min_ms",
        rtt_max: u32 = "vdi_rtt_max_ms",
        rtt_avg: u32 = "vdi_rtt_avg_ms",
        audio_rx_bytes: u32 = "vdi_audio_rx_bytes",
        audio_tx_bytes: u32 = "vdi_audio_tx_bytes",
        audio_tx_limit: u32 = "vdi_audio_tx_limit",
        img_rx_bytes: u32 = "vdi_img_rx_bytes",
        img_tx_bytes: u32 = "vdi_img_tx_bytes",
        img_frames: u32 = "vdi_img_frames",
        img_quality_min: u32 = "vdi_img_qual_min",
        img_quality_max: u32 = "vdi_img_qual_max",
        img_quality_avg: u32 = "vdi_img_qual_avg",
        usb_rx_bytes: u32 = "vdi_usb_rx_bytes",
        usb_tx_bytes: u32 = "vdi_usb_tx_bytes",
    }
}
