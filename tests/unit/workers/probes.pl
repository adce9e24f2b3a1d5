# What a command can do, tried by system calls. Perl, since every Debian has it and it can make any call.
#
# On stdin: lines "name value", what the host has to be reached. On stdout: lines "probe answer"; the answer
# is "done" or the error's name. A probe that may harm itself runs in a child.
use strict; use warnings; use Socket; use Errno; use POSIX ();
$| = 1;
my %at; while (<STDIN>) { chomp; my ($name, $value) = split / /, $_, 2; $at{$name} = $value }
my $here = (-w "/work") ? "/work" : "/";

sub answer { my ($name, $ok) = @_; my $error = $!;
    my ($named) = $ok ? () : grep { $!{$_} } sort keys %!; $! = $error;
    print "$name ", $ok ? "done" : ($named || "EUNKNOWN"), "\n" }
sub call { my ($name, $number, @arguments) = @_;
    if (!defined $at{"nr_$number"}) { print "$name ENOSYS\n"; return }
    my $result = syscall($at{"nr_$number"} + 0, @arguments);
    answer($name, $result != -1); return $result }
sub in_child { my ($code) = @_; my $pid = fork; defined $pid or return;
    if (!$pid) { $code->(); POSIX::_exit(0) } waitpid $pid, 0 }
sub opens { my ($name, $mode, $path) = @_; my $ok = open(my $file, $mode, $path);
    # opened is not enough: what /proc gives is decided at the reading
    if ($ok && $mode eq "<") { $ok = defined sysread($file, my $piece, 1) }
    answer($name, $ok) }
sub lists { my ($name, $path) = @_; my $ok = opendir(my $dir, $path);
    my $found = $ok ? grep { !/^\.\.?$/ } readdir $dir : 0;
    print "$name ", $ok ? ($found ? "done" : "EMPTY") : do { my ($e) = grep { $!{$_} } sort keys %!; $e }, "\n" }

my @held = grep { my $copy = POSIX::dup($_); defined $copy and POSIX::close($copy), 1 } 3 .. 63;
print "inherit descriptors ", (grep { $_ == $at{inherited} } @held) ? "done" : "EBADF", "\n";

# files of the host
opens("read a file that all may read", "<", $at{file});
opens("write a file that all may write", ">>", $at{open_file});
opens("create a file in a directory that all may write", ">", "$at{open_dir}/made");
lists("list a directory that all may list", $at{open_dir});
answer("ask for a file's size", -s $at{file});
answer("truncate", truncate($at{open_file}, 0));
answer("remove", unlink($at{open_file}));
answer("rename into scratch", rename($at{open_file}, "$here/taken"));
answer("hard link into scratch", link($at{open_file}, "$here/linked"));
if ($here ne "/") { symlink($at{file}, "$here/symbolic") or die; opens("follow a symbolic link out of scratch", "<", "$here/symbolic") }
else { print "follow a symbolic link out of scratch ENOENT\n" }
answer("change the mode of a file of this user", chmod(0777, $at{own_file}));
answer("change the times of a file of this user", utime(1, 1, $at{own_file}));
my ($attribute, $value) = ("user.probe\0", "x");
call("set an attribute of a file of this user", "setxattr", "$at{own_file}\0", $attribute, $value, 1, 0);
opens("read /etc/passwd", "<", "/etc/passwd");
opens("read /etc/shadow", "<", "/etc/shadow");
opens("read the worker's configuration", "<", $at{cwd_file});
lists("list /root", "/root"); lists("list /home", "/home"); lists("list /var", "/var"); lists("list /run", "/run");
lists("list /sys", "/sys"); lists("list the worker's directory", $at{cwd});
opens("write below /usr", ">", "/usr/share/made"); opens("write to /dev/shm", ">", $at{shared_file});
opens("write to the root", ">", "/made"); opens("read /proc/kcore", "<", "/proc/kcore");
opens("read /dev/kmsg", "<", "/dev/kmsg"); opens("read /dev/mem", "<", "/dev/mem");
opens("write /proc/self/oom_score_adj", ">", "/proc/self/oom_score_adj");
opens("write /proc/sys", ">", "/proc/sys/kernel/hostname"); opens("write /proc/sysrq-trigger", ">", "/proc/sysrq-trigger");
answer("make a device", POSIX::mkfifo("/dev/made", 0600));
call("use a disk by its number", "mknod_null", "$here/disk\0", 0060666, 0x0800);
opens("open the terminal", "<", "/dev/tty");

# what it needs
for my $device (qw(null zero urandom random)) { opens("read /dev/$device", "<", "/dev/$device") unless $device eq "null" }
answer("write /dev/null", open(my $null, ">", "/dev/null"));
answer("read /usr", open(my $usr, "<", "/usr/bin/env"));
my $pipe; answer("pipe to a child", open($pipe, "-|", "echo", "x") && <$pipe> eq "x\n");

# processes of the host
my $pid = $at{pid};
opens("read the environment of the worker", "<", "/proc/$at{worker}/environ");
opens("read the environment of a process of this user", "<", "/proc/$pid/environ");
opens("read the arguments of a process of this user", "<", "/proc/$pid/cmdline");
opens("read the memory of a process of this user", "<", "/proc/$pid/mem");
lists("see the root of a process of this user", "/proc/$pid/root/");
lists("see the files of a process of this user", "/proc/$pid/fd");
my $begun = ""; if (open(my $environment, "<", "/proc/1/environ")) { local $/; $begun = <$environment> // "" }
print "read the environment of the first process ", $begun =~ /SECRET|FDSTORE_URL|HOME=\/[^w]/ ? "done" : "EACCES", "\n";
answer("signal the worker", kill 0, $at{worker});
answer("signal a process of this user", kill 0, $pid);
my $pin = syscall($at{nr_pidfd_open} + 0, $pid + 0, 0);
if ($pin >= 0) {
    call("signal it by a descriptor", "pidfd_send_signal", $pin, 0, 0, 0);
    call("take a descriptor of it", "pidfd_getfd", $pin, 0, 0) }
else { print "signal it by a descriptor ESRCH\ntake a descriptor of it ESRCH\n" }
in_child(sub { call("trace a process of this user", "ptrace", 16, $pid + 0, 0, 0) });
my $piece = "\0" x 64; my $vector = pack("QQ", unpack("Q", pack("P", $piece)), 8);
call("read memory by a call", "process_vm_readv", $pid + 0, $vector, 1, $vector, 1, 0);
call("write memory by a call", "process_vm_writev", $pid + 0, $vector, 1, $vector, 1, 0);
call("compare with a process of this user", "kcmp", $pid + 0, $$ + 0, 2, 0, 0);
my $limits = "\0" x 16;
call("change limits of a process of this user", "prlimit64", $pid + 0, 0, 0, $limits);
call("slow down a process of this user", "setpriority", 0, $pid + 0, 19);
# as nice as this process is, so that nothing changes where it is allowed
call("slow down all processes of this user", "setpriority", 2, 0, getpriority(0, 0));
call("slow down the disk of all processes of this user", "ioprio_set", 3, 0, 0);
my $mask = "\1" . "\0" x 127;
call("move a process of this user", "sched_setaffinity", $pid + 0, 128, $mask);

# network
sub connects { my ($name, $family, $type, $protocol, $address) = @_;
    socket(my $socket, $family, $type, $protocol) or return answer($name, 0);
    answer($name, connect($socket, $address)) }
my $loopback = inet_aton("127.0.0.1");
connects("connect by TCP", AF_INET, SOCK_STREAM, 6, pack_sockaddr_in($at{tcp}, $loopback));
connects("connect by multipath TCP", AF_INET, SOCK_STREAM, 262, pack_sockaddr_in($at{tcp}, $loopback));
connects("connect to a unix socket", AF_UNIX, SOCK_STREAM, 0, pack_sockaddr_un($at{unix}));
connects("connect to an abstract unix socket", AF_UNIX, SOCK_STREAM, 0, pack("S a*", AF_UNIX, "\0$at{abstract}"));
sub sends { my ($name, $socket, $address) = @_; answer($name, $socket && defined send($socket, "probe", 0, $address)) }
my ($udp, $datagram, $one, $other, $left, $right);
socket($udp, AF_INET, SOCK_DGRAM, 17) or undef $udp;
# to a network of its own the first is sent, and told with the second that nobody hears there
$udp and connect($udp, pack_sockaddr_in($at{udp}, $loopback)) and send($udp, "probe", 0);
answer("send by UDP", $udp && defined send($udp, "probe", 0));
socket($datagram, AF_UNIX, SOCK_DGRAM, 0) or undef $datagram;
sends("send to a unix socket", $datagram, pack_sockaddr_un($at{unix_datagram}));
socketpair($one, $other, AF_UNIX, SOCK_DGRAM, 0) or undef $one;
sends("send from one of a pair", $one, pack_sockaddr_un($at{unix_datagram}));
answer("use a pair", socketpair($left, $right, AF_UNIX, SOCK_STREAM, 0) && syswrite($left, "x"));
answer("raw socket", socket(my $raw, AF_INET, SOCK_RAW, 1)); answer("packet socket", socket(my $packet, 17, SOCK_RAW, 0));
answer("vsock", socket(my $vsock, 40, SOCK_STREAM, 0)); answer("kernel crypto socket", socket(my $alg, 38, 5, 0));
my $seen = 0;
if (socket(my $netlink, 16, SOCK_RAW, 0)) {
    send($netlink, pack("L S S L L C x3 x12", 32, 18, 0x301, 1, 0, 0), 0);
    my $timeout = pack("q q", 1, 0); setsockopt($netlink, SOL_SOCKET, SO_RCVTIMEO, $timeout);
    recv($netlink, my $reply, 65536, 0); $seen = index($reply, "$at{interface}\0") >= 0 }
else { $seen = 0 }
print "see the host's network interfaces ", $seen ? "done" : "ENODEV", "\n";

# the kernel
my $attributes = "\0" x 128; my $path = "/\0"; my $empty = "\0"; my $tmpfs = "tmpfs\0"; my $target = "$here\0";
in_child(sub { call("user namespace by unshare", "unshare", 0x10000000) });
in_child(sub { my $child = call("user namespace by clone", "clone", 0x10000011, 0, 0, 0, 0); POSIX::_exit(0) });
in_child(sub { my $wanted = pack("Q11", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0);
    call("user namespace by clone3", "clone3", $wanted, 88); POSIX::_exit(0) });
call("mount", "mount", $tmpfs, $target, $tmpfs, 0, $empty); call("unmount", "umount2", $target, 2);
call("open a file system", "fsopen", $tmpfs, 0);
call("change the root by pivot_root", "pivot_root", $target, $target);
call("change the root by chroot", "chroot", $target);
syscall($at{nr_setuid} + 0, 0); print "become root ", $< == 0 ? "done" : "EPERM", "\n"; call("choose groups", "setgroups", 0, 0);
call("load a module", "init_module", $empty, 0, $empty); call("load a kernel", "kexec_load", 0, 0, 0, 0);
call("restart the machine", "reboot", 0, 0, 0, 0); call("read the kernel's log", "syslog", 10, 0, 0);
my $time = pack("qq", -1, -1);
call("set the time", "clock_settime", 0, $time); call("set the hostname", "sethostname", $empty, 0);
call("read the session keyring", "keyctl", 0, -3, 0);
my ($type, $description, $payload) = ("user\0", "$at{key}\0", "x");
call("add a key", "add_key", $type, $description, $payload, 1, -3);
call("find the worker's key", "request_key", $type, $description, 0, 0);
my $parameters = "\0" x 256;
call("io_uring", "io_uring_setup", 4, $parameters); call("bpf", "bpf", 0, $attributes, 48);
call("performance events", "perf_event_open", $attributes, 0, -1, -1, 0);
call("page faults", "userfaultfd", 1); call("watch a file system", "fanotify_init", 0, 0);
my $handle = pack("L", 128) . "\0" x 132; my $mount = pack("L", 0);
call("name a file by a handle", "name_to_handle_at", -100, $path, $handle, $mount, 0);
call("a message queue of the host", "mq_open", "$at{queue}\0", 0, 0, 0);
call("shared memory of the host", "shmget", $at{shm} + 0, 0, 0);
in_child(sub { $at{nr_x32_getpid} or POSIX::_exit(1); $! = 0; syscall($at{nr_x32_getpid} + 0) == -1 and POSIX::_exit(1) });
print "the x32 interface ", $? ? "EPERM" : "done", "\n"; # killed for it, or refused
call("another personality", "personality", 0x0040000);
call("memory of the machine by ports", "ioperm", 0, 1, 1);

# what it was born with
print "inherit the environment ", (grep { /SECRET|FDSTORE_URL/ } keys %ENV) ? "done" : "ENOENT", "\n";
print "gain by a setuid program ", syscall($at{nr_prctl} + 0, 39, 0, 0, 0, 0) == 1 ? "EPERM" : "done", "\n";
my $header = pack("LL", 0x20080522, 0); my $sets = "\0" x 24; syscall($at{nr_capget} + 0, $header, $sets);
print "have capabilities ", $sets =~ /[^\0]/ ? "done" : "EPERM", "\n";
