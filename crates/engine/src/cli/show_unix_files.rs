//! `show unix files`: lists open file descriptors.

use serde_json::{Value, json};
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_graph::control::{Control, FileInfo};

/// `show unix files`
pub struct ShowUnixFiles;

/// The command.
pub static COMMAND: ShowUnixFiles = ShowUnixFiles;

struct Row {
    fd: i32,
    thread: Option<usize>,
    counts: Option<[u64; 3]>,
    name: String,
    description: String,
}

impl Command<Control> for ShowUnixFiles {
    fn path(&self) -> &'static str {
        "show unix files"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["show files"]
    }

    fn help(&self) -> &'static str {
        "Show open file descriptors\n\
         Those without a thread are not polled."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let rows = collect(&c.files(), &open_files());
        out.json(rows.iter().map(to_json).collect());
        out.text(&format(&rows));
        Ok(Outcome::Done)
    }
}

/// Returns the open descriptors with their names, as the kernel lists them.
fn open_files() -> Vec<(i32, String)> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let name = |entry: std::fs::DirEntry| {
        let fd = entry.file_name().to_str()?.parse().ok()?;
        // The descriptor that reads this directory is closed by now.
        let target = std::fs::read_link(entry.path()).ok()?;
        Some((fd, target.to_string_lossy().into_owned()))
    };
    // The directory's own descriptor is open while it is read.
    let own = format!("/proc/{}/fd", std::process::id());
    entries.flatten().filter_map(name).filter(|(_, to)| *to != own).collect()
}

fn collect(described: &[FileInfo], open: &[(i32, String)]) -> Vec<Row> {
    let mut rows: Vec<Row> = described
        .iter()
        .map(|f| Row {
            fd: f.fd,
            thread: Some(f.thread),
            counts: f.counts,
            name: open.iter().find(|o| o.0 == f.fd).map_or("?".into(), |o| o.1.clone()),
            description: f.description.clone(),
        })
        .collect();
    let others = open.iter().filter(|o| described.iter().all(|f| f.fd != o.0));
    rows.extend(others.map(|(fd, name)| Row {
        fd: *fd,
        thread: None,
        counts: None,
        name: name.clone(),
        description: String::new(),
    }));
    rows.sort_by_key(|r| (r.thread.unwrap_or(usize::MAX), r.fd));
    rows
}

fn to_json(r: &Row) -> Value {
    json!({
        "fd": r.fd, "thread": r.thread, "reads": r.counts.map(|c| c[0]),
        "writes": r.counts.map(|c| c[1]), "errors": r.counts.map(|c| c[2]),
        "file_name": r.name, "description": r.description,
    })
}

fn format(rows: &[Row]) -> String {
    let mut table = Table::new()
        .gap(1)
        .column("FD", Align::Right, 3)
        .column("Thread", Align::Right, 6)
        .column("Read", Align::Right, 12)
        .column("Write", Align::Right, 12)
        .column("Error", Align::Right, 12)
        .column("File Name", Align::Left, 32)
        .column("Description", Align::Left, 0);
    for r in rows {
        let count = |i: usize| r.counts.map_or("-".to_owned(), |c| c[i].to_string());
        table.row([
            r.fd.to_string(),
            r.thread.map_or("-".to_owned(), |t| t.to_string()),
            count(0),
            count(1),
            count(2),
            r.name.clone(),
            r.description.clone(),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_files_come_first_by_thread() {
        let file = |fd, thread, text: &str, counts| FileInfo {
            fd,
            thread,
            description: text.into(),
            counts,
        };
        let described = [
            file(9, 1, "host-eth0 rx queue 0", Some([12, 0, 1])),
            file(4, 0, "wakes the main thread", None),
            file(77, 1, "already closed", None),
        ];
        let open = [(0, "/dev/null"), (4, "anon_inode:[eventfd]"), (9, "socket:[1234]")];
        let open: Vec<_> = open.iter().map(|(fd, n)| (*fd, (*n).to_owned())).collect();
        let text = format(&collect(&described, &open));
        thalweg_testkit::golden!("tests/golden/unix_files.txt", text);
    }

    #[test]
    fn the_kernel_is_asked() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert!(open_files().contains(&(fd, "/dev/null".into())));
    }
}
