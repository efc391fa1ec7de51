//! Classification of IP addresses as public or private.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address belongs to the public internet. All reserved ranges do not: private networks,
/// loopback, link-local, carrier-grade NAT, multicast, documentation, and cloud metadata.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_set_aside = match address.octets() {
        [0 | 10 | 127, ..] => true,
        [100, 64..=127, ..] => true,
        [169, 254, ..] => true,
        [172, 16..=31, ..] => true,
        [192, 168, ..] => true,
        [192, 0, 0 | 2, _] => true,
        [192, 88, 99, _] => true,
        [192, 31, 196, _] | [192, 52, 193, _] | [192, 175, 48, _] => true,
        [198, 18 | 19, ..] => true,
        [198, 51, 100, _] => true,
        [203, 0, 113, _] => true,
        // Metadata service of a large cloud, though the address looks public.
        [168, 63, 129, 16] => true,
        [224..=255, ..] => true,
        _ => false,
    };
    !is_set_aside
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = inner_v4(address) {
        return is_public_v4(inner);
    }
    match address.segments() {
        // Tunnels, benchmarks, documentation and identifiers.
        [0x2001, 0x0000..=0x01ff, ..] => false,
        [0x2001, 0x0db8, ..] => false,
        [0x3fff, 0x0000..=0x0fff, ..] => false,
        // Of all the rest only this block is assigned.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

/// IPv4 address embedded in an IPv6 address.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let pair = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(pair(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(pair(high, low)),
        [0x2002, high, low, ..] => Some(pair(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        for address in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "169.253.1.1",
            "192.0.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
