//! Tests of every driver, by packet generator ports: streams of files are what comes from outside,
//! and captures what goes there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use tempfile::TempDir;
use thalweg_device::SwIfIndex;
use thalweg_device::testing::drivers::{Abilities, Outside, Statement};
use thalweg_device_pg::{
    Data, FEATURE, Mode, StreamSpec, create_port, define_stream, delete_port, enable_streams, pcap,
    set_capture, stream,
};
use thalweg_engine::Feature;
use thalweg_graph::Control;
use thalweg_wire::pcap as format;

/// Files of two ports.
struct Files {
    dir: TempDir,
    ports: [Port; 2],
    /// Number of files so far.
    count: usize,
}

/// A port, its capture, and how many of its packets were taken.
#[derive(Default)]
struct Port {
    sw_if: SwIfIndex,
    capture: PathBuf,
    taken: usize,
}

impl Files {
    fn next(&mut self) -> PathBuf {
        self.count += 1;
        self.dir.path().join(format!("{}.pcap", self.count))
    }
}

impl Outside for Files {
    fn feature(&self) -> &'static Feature {
        &FEATURE
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            shortest: 1,
            burst: 5000,
            rx_queues: 0,
            modes: &[],
            // A stream brings its port up.
            hears_while_down: false,
            sets_mac: true,
            mtu: None,
            carrier: false,
            unplugs: false,
            steers: false,
        }
    }

    fn create(&mut self, c: &mut Control, n: usize) -> SwIfIndex {
        let sw_if = create_port(c, n as u32, Mode::Ethernet).unwrap();
        let capture = self.next();
        let started = set_capture(c, sw_if, Some((&capture, u64::MAX))).unwrap();
        c.finish_late();
        started.wait();
        self.ports[n] = Port { sw_if, capture, taken: 0 };
        sw_if
    }

    fn delete(&mut self, c: &mut Control, n: usize) {
        delete_port(c, self.ports[n].sw_if).unwrap();
    }

    fn send(
        &mut self,
        c: &mut Control,
        n: usize,
        worker: usize,
        frames: &[Vec<u8>],
    ) -> Result<(), String> {
        let path = self.next();
        let mut file = format::file_header(pcap::LINK_ETHERNET, 65_535).to_vec();
        for frame in frames {
            let len = frame.len() as u32;
            file.extend(format::record_header(0, len, len));
            file.extend(frame);
        }
        std::fs::write(&path, file).unwrap();
        let name = format!("s{}", self.count);
        let spec = StreamSpec {
            interface: Some(format!("pg{n}")),
            worker,
            ..StreamSpec::new(&name, Data::Pcap(path))
        };
        define_stream(c, spec).map_err(|e| e.to_string())?;
        enable_streams(c, Some(&name), true).unwrap();
        Ok(())
    }

    fn take(&mut self, c: &mut Control, n: usize) -> Vec<Vec<u8>> {
        let settling = stream::settling(c);
        c.finish_late();
        settling.wait();
        let port = &mut self.ports[n];
        // The file is created with its first packet.
        let Ok(file) = pcap::read(&port.capture) else { return Vec::new() };
        let new = file.packets[port.taken..].to_vec();
        port.taken = file.packets.len();
        new
    }
}

fn run(_: &str, statement: Statement) {
    let dir = tempfile::tempdir().unwrap();
    statement(Box::new(Files { dir, ports: Default::default(), count: 0 }));
}

thalweg_device::driver_statements!(run);
