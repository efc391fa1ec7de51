//! Seccomp filter: blocks system calls that no workspace command needs, and sockets.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::sandbox::SandboxPolicy;

/// System calls that are always refused.
const REFUSED: &[i64] = &[
    // Other processes: their memory, their descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts, roots, namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Files past their paths, and calls past this filter.
    libc::SYS_open_by_handle_at,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    // Keys of the user.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The machine.
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_fanotify_init,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

/// System calls that change files without opening them, or reach other processes. They are refused where
/// nothing may change; Landlock has no right for them.
const CHANGES: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_mknodat,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Watching files of other programs.
    libc::SYS_inotify_init1,
    libc::SYS_setpriority,
    libc::SYS_ioprio_set,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
    SYS_FCHMODAT2,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
];

/// Newer system calls, with the same numbers on all architectures.
const SYS_FCHMODAT2: i64 = 452;
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;

/// `ioctl` requests that change file attributes.
const ATTRIBUTES: [u64; 3] = [0x4008_6602, 0x4004_6602, 0x401c_5820];

/// Further calls of this architecture.
#[cfg(target_arch = "x86_64")]
const CHANGES_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_mknod,
    libc::SYS_inotify_init,
];
#[cfg(not(target_arch = "x86_64"))]
const CHANGES_HERE: &[i64] = &[];

/// Further calls of this architecture.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] =
    &[libc::SYS_kexec_file_load, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// `clone` flags that create namespaces: mounts, control groups, names, messages, users, processes, network.
const NAMESPACES: [u64; 7] =
    [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];

/// Mask of a socket type without flags.
const SOCKET_TYPE: u64 = 0xf;

/// `ioctl` requests that inject terminal input.
const TERMINAL_INPUT_REQUESTS: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// Applies the filter to this thread.
pub(crate) fn restrict(
    policy: &SandboxPolicy,
    deny_truncate: bool,
    deny_signals: bool,
) -> Result<(), String> {
    let refuse = |error: Error| format!("seccomp: {error}");
    // Libraries fall back to the older call, whose flags can be checked.
    let newer = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    for (rules, errno) in
        [(newer, libc::ENOSYS), (refused(policy, deny_truncate, deny_signals).map_err(refuse)?, libc::EPERM)]
    {
        let program = compile(rules, errno).map_err(refuse)?;
        apply_filter(&program).map_err(refuse)?;
    }
    Ok(())
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: libc::c_int) -> Result<BpfProgram, Error> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)?;
    let mut program = refuse_x32_calls();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// Refuses the x32 call numbers of x86-64 kernels. The following filter kills processes of other
/// architectures.
fn refuse_x32_calls() -> Vec<sock_filter> {
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let load_number = step(0x20, 0, 0, 0);
    let is_second = step(0x35, 0, 1, 0x4000_0000);
    let refuse = step(0x06, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs());
    vec![load_number, is_second, refuse]
}

fn refused(
    policy: &SandboxPolicy,
    deny_truncate: bool,
    deny_signals: bool,
) -> Result<BTreeMap<i64, Vec<SeccompRule>>, Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(REFUSED_HERE).map(|call| (*call, Vec::new())).collect();
    if deny_truncate {
        rules.insert(libc::SYS_truncate, Vec::new());
    }
    if deny_signals {
        let calls = [
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_tgkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_pidfd_send_signal,
        ];
        rules.extend(calls.map(|call| (call, Vec::new())));
    }
    if policy.changes_nothing {
        rules.extend(CHANGES.iter().chain(CHANGES_HERE).map(|call| (*call, Vec::new())));
    }
    let flag = |flag: u64| rule(&[condition(0, SeccompCmpOp::MaskedEq(flag), flag)]);
    rules.insert(libc::SYS_clone, NAMESPACES.into_iter().map(flag).collect::<Result<_, _>>()?);
    let request = |request: u64| rule(&[condition(1, SeccompCmpOp::Eq, request)]);
    let attributes: &[u64] = if policy.changes_nothing { &ATTRIBUTES } else { &[] };
    let requests = TERMINAL_INPUT_REQUESTS.iter().chain(attributes).copied();
    rules.insert(libc::SYS_ioctl, requests.map(request).collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_socket, vec![other_than(&families(policy))?]);
    // A stream pair reaches no other process; a datagram pair can write to any address.
    let is_datagram =
        condition(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), u64::from(libc::SOCK_DGRAM.unsigned_abs()));
    let mut pairs = vec![other_than(&[libc::AF_UNIX])?];
    if !policy.unix_sockets {
        pairs.push(rule(&[is_datagram])?);
    }
    rules.insert(libc::SYS_socketpair, pairs);
    if policy.changes_nothing {
        // Limits of another process could end it.
        rules.insert(libc::SYS_prlimit64, vec![rule(&[condition(0, SeccompCmpOp::Ne, 0)])?]);
    }
    Ok(rules)
}

/// Socket families that a policy allows.
fn families(policy: &SandboxPolicy) -> Vec<libc::c_int> {
    let mut families = Vec::new();
    if policy.unix_sockets {
        families.push(libc::AF_UNIX);
    }
    if policy.network {
        // Netlink is needed to list the machine's addresses.
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    families
}

/// Matches if the first argument is none of these.
fn other_than(allowed: &[libc::c_int]) -> Result<SeccompRule, Error> {
    if allowed.is_empty() {
        // No family has this number, and a rule needs a condition.
        return rule(&[condition(0, SeccompCmpOp::Ne, u64::from(u32::MAX))]);
    }
    let conditions: Vec<_> = allowed
        .iter()
        .map(|family| condition(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())))
        .collect();
    rule(&conditions)
}

type ArgumentCondition = (u8, SeccompCmpOp, u64);

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> ArgumentCondition {
    (argument, operator, value)
}

/// Conjunction of conditions on the lower half of arguments, which is all that the kernel uses.
fn rule(conditions: &[ArgumentCondition]) -> Result<SeccompRule, Error> {
    let conditions = conditions.iter().map(|(argument, operator, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    Ok(SeccompRule::new(conditions.collect::<Result<_, _>>()?)?)
}
