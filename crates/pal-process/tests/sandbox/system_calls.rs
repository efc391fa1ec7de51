//! System calls: sockets, other processes, mounts.

use pal_permissions::SandboxLevel;

use crate::scratch_project::fixtures;
use crate::{SandboxFixture, sandbox_fixtures};

/// Makes one system call and returns its result and errno.
const CALL: &str =
    "$c = shift(@ARGV) + 0; $r = syscall($c, map { $_ + 0 } @ARGV); print $r, ' ', $r < 0 ? $! + 0 : 0";

fn has_perl() -> bool {
    let has = std::process::Command::new("perl").arg("-v").output().is_ok();
    if !has {
        eprintln!("NOT TESTED: calls to the kernel, because there is no perl on this machine");
    }
    has
}

fn call(fixture: &SandboxFixture, call: i64, arguments: &[i64]) -> String {
    let numbers: Vec<String> = [call].iter().chain(arguments).map(ToString::to_string).collect();
    let mut line = vec!["-e", CALL];
    line.extend(numbers.iter().map(String::as_str));
    fixture.run("perl", &line).output.text()
}

fn refused(errno: i32) -> String {
    format!("-1 {errno}")
}

#[test]
fn system_calls_that_reach_outside_are_refused() {
    if !has_perl() {
        return;
    }
    let calls = [
        ("ptrace", libc::SYS_ptrace, vec![0, 0, 0, 0]),
        ("process_vm_readv", libc::SYS_process_vm_readv, vec![1, 0, 0, 0, 0, 0]),
        ("process_vm_writev", libc::SYS_process_vm_writev, vec![1, 0, 0, 0, 0, 0]),
        ("pidfd_getfd", libc::SYS_pidfd_getfd, vec![-1, 0, 0]),
        ("mount", libc::SYS_mount, vec![0, 0, 0, 0, 0]),
        ("umount2", libc::SYS_umount2, vec![0, 0]),
        ("fsopen", libc::SYS_fsopen, vec![0, 0]),
        ("open_tree", libc::SYS_open_tree, vec![-1, 0, 0]),
        ("unshare", libc::SYS_unshare, vec![0]),
        ("setns", libc::SYS_setns, vec![-1, 0]),
        ("bpf", libc::SYS_bpf, vec![0, 0, 0]),
        ("perf_event_open", libc::SYS_perf_event_open, vec![0, 0, 0, 0, 0]),
        ("io_uring_setup", libc::SYS_io_uring_setup, vec![0, 0]),
        ("userfaultfd", libc::SYS_userfaultfd, vec![0]),
        ("keyctl", libc::SYS_keyctl, vec![0, 0, 0, 0, 0]),
        ("add_key", libc::SYS_add_key, vec![0, 0, 0, 0, 0]),
        ("kexec_load", libc::SYS_kexec_load, vec![0, 0, 0, 0]),
        ("init_module", libc::SYS_init_module, vec![0, 0, 0]),
        ("swapon", libc::SYS_swapon, vec![0, 0]),
        ("reboot", libc::SYS_reboot, vec![0, 0, 0, 0]),
        ("open_by_handle_at", libc::SYS_open_by_handle_at, vec![-1, 0, 0]),
        ("clone of a user namespace", libc::SYS_clone, vec![0x1000_0000 | 17, 0, 0, 0, 0]),
        ("clone of a network", libc::SYS_clone, vec![0x4000_0000 | 17, 0, 0, 0, 0]),
        ("typing on a terminal", libc::SYS_ioctl, vec![0, 0x5412, 0]),
        ("typing with other bits", libc::SYS_ioctl, vec![0, 0x5412 | (1 << 40), 0]),
    ];
    for fixture in sandbox_fixtures() {
        for (name, number, arguments) in &calls {
            assert_eq!(
                call(&fixture, *number, arguments),
                refused(libc::EPERM),
                "{}: {name}",
                fixture.sandbox
            );
        }
        assert_eq!(call(&fixture, libc::SYS_clone3, &[0, 0]), refused(libc::ENOSYS), "{}", fixture.sandbox);
        if cfg!(target_arch = "x86_64") {
            let second = 0x4000_0000 | 39;
            assert_eq!(call(&fixture, second, &[]), refused(libc::ENOSYS), "the second set of numbers");
        }
    }
}

#[test]
fn without_network_only_socket_pairs_work() {
    if !has_perl() {
        return;
    }
    let (stream, datagram, raw) = (1, 2, 3);
    let families = [
        ("tcp", libc::AF_INET, stream),
        ("tcp 6", libc::AF_INET6, stream),
        ("udp", libc::AF_INET, datagram),
        ("udp 6", libc::AF_INET6, datagram),
        ("raw", libc::AF_INET, raw),
        ("unix", libc::AF_UNIX, stream),
        ("unix datagrams", libc::AF_UNIX, datagram),
        ("netlink", libc::AF_NETLINK, raw),
        ("packets", libc::AF_PACKET, raw),
        ("virtual machines", libc::AF_VSOCK, stream),
        ("ciphers", libc::AF_ALG, 5),
    ];
    let socket = |fixture: &SandboxFixture, family: i32, kind: i64| {
        call(fixture, libc::SYS_socket, &[family.into(), kind, 0])
    };
    for mut fixture in sandbox_fixtures() {
        for (name, family, kind) in families {
            assert_eq!(socket(&fixture, family, kind), refused(libc::EPERM), "{}: {name}", fixture.sandbox);
        }
        let pair = "use Socket; socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die $!; syswrite A, 'x'; sysread B, $x, 1; print $x";
        assert_eq!(fixture.run("perl", &["-e", pair]).output.text(), "x", "{}", fixture.sandbox);

        fixture.policy.network = true;
        assert!(socket(&fixture, libc::AF_INET, stream).ends_with(" 0"), "{}", fixture.sandbox);
        for (name, family, kind) in [("unix", libc::AF_UNIX, stream), ("packets", libc::AF_PACKET, raw)] {
            assert_eq!(socket(&fixture, family, kind), refused(libc::EPERM), "{}: {name}", fixture.sandbox);
        }
        fixture.policy.unix_sockets = true;
        assert!(socket(&fixture, libc::AF_UNIX, stream).ends_with(" 0"), "{}", fixture.sandbox);
    }
}

#[test]
fn a_server_outside_cannot_be_reached() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("an address").port();
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    for mut fixture in sandbox_fixtures() {
        assert!(
            !fixture.run("bash", &["-c", &line]).output.text().contains("connected"),
            "{}",
            fixture.sandbox
        );
        fixture.policy.network = true;
        assert!(
            fixture.run("bash", &["-c", &line]).output.text().contains("connected"),
            "{}",
            fixture.sandbox
        );
    }
}

#[test]
fn outside_processes_cannot_be_signalled_or_traced() {
    let mut victim =
        std::process::Command::new("sleep").arg("60").env("PAL_KEY", "secret").spawn().expect("sleep");
    let pid = victim.id();
    for fixture in sandbox_fixtures() {
        if matches!(fixture.sandbox, pal_process::sandbox::Sandbox::Landlock { abi: ..6 }) {
            eprintln!("NOT TESTED: this kernel's Landlock does not know signals");
            continue;
        }
        assert!(!fixture.shell(&format!("kill -9 {pid}")).status.is_success(), "{}", fixture.sandbox);
        assert!(
            !fixture.shell(&format!("cat /proc/{pid}/environ")).output.text().contains("secret"),
            "{}",
            fixture.sandbox
        );
        assert!(
            !fixture.shell(&format!("head -c1 /proc/{pid}/mem")).status.is_success(),
            "{}",
            fixture.sandbox
        );
        let powers = fixture.shell("grep CapEff /proc/self/status").output.text();
        let powers = powers.split_whitespace().nth(1).and_then(|text| u64::from_str_radix(text, 16).ok());
        assert!(
            powers.is_some_and(|powers| powers & !0xdb == 0),
            "{}: powers of root: {powers:x?}",
            fixture.sandbox
        );
        assert!(fixture.shell("sleep 60 & kill -9 $!").status.is_success(), "its own it may end");
    }
    assert_eq!(victim.try_wait().expect("a child"), None, "it runs");
    victim.kill().expect("it runs");
    victim.wait().expect("it has ended");
}

#[test]
fn read_only_commands_change_no_attributes_limits_or_shared_memory() {
    if !has_perl() {
        return;
    }
    let datagrams = [i64::from(libc::AF_UNIX), i64::from(libc::SOCK_DGRAM), 0, 0];
    let calls = [
        ("setxattrat", 463, vec![-100, 0, 0, 0, 0, 0]),
        ("removexattrat", 466, vec![-100, 0, 0, 0]),
        ("file_setattr", 469, vec![-100, 0, 0, 0, 0]),
        ("flags of a file", libc::SYS_ioctl, vec![0, 0x4008_6602, 0]),
        ("attributes of a file", libc::SYS_ioctl, vec![0, 0x401c_5820, 0]),
        ("limits of another process", libc::SYS_prlimit64, vec![1, 7, 0, 0]),
        ("a pair of datagram sockets", libc::SYS_socketpair, datagrams.to_vec()),
        ("shmat", libc::SYS_shmat, vec![0, 0, 0]),
        ("shmctl", libc::SYS_shmctl, vec![0, 0, 0]),
        ("semctl", libc::SYS_semctl, vec![0, 0, 0, 0]),
        ("msgctl", libc::SYS_msgctl, vec![0, 0, 0]),
        ("mq_unlink", libc::SYS_mq_unlink, vec![0]),
        ("inotify_init1", libc::SYS_inotify_init1, vec![0]),
    ];
    for fixture in fixtures() {
        let policy = fixture.policy(SandboxLevel::ReadOnly);
        for (name, number, arguments) in &calls {
            let numbers: Vec<String> =
                [number].into_iter().chain(arguments).map(ToString::to_string).collect();
            let line = format!("perl -e '{CALL}' -- {}", numbers.join(" "));
            let line = line.replace("' '", "\" \"");
            let done = fixture.shell(&line, &policy);
            assert_eq!(done.output.text(), refused(libc::EPERM), "{name} behind {}", fixture.sandbox);
        }
        let own = fixture.shell("ulimit -n", &policy);
        assert!(own.status.is_success(), "a command sees its own limits: {}", own.output.text());
    }
}
