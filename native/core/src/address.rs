//! Whose connection it is: addresses of clients, ranges of them, and what counts as one client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The bits in front of an IPv4 address that is written as an IPv6 one.
const MAPPED_BITS: u32 = 96;

/// What one client can choose its addresses from: an IPv4 address, or a /64 of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Site {
    V4(Ipv4Addr),
    V6(u64),
}

impl Site {
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Site::V4(address),
            IpAddr::V6(address) => Site::V6((address.to_bits() >> 64) as u64),
        }
    }
}

/// All addresses with the same first bits. IPv4 is the part of IPv6 where it is mapped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    first: u128,
    bits: u32,
}

impl Range {
    /// `10.0.0.0/8`, `fd00::/8`, or a single address. None for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let (most, before) = if address.is_ipv4() { (32, MAPPED_BITS) } else { (128, 0) };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most))?;
        Some(Range { first: mapped(address), bits: before + bits })
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        // Shifting by all 128 bits is not defined.
        (mapped(address) ^ self.first).checked_shr(128 - self.bits).unwrap_or(0) == 0
    }
}

fn mapped(address: IpAddr) -> u128 {
    let address: Ipv6Addr = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    address.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_site_is_an_ipv4_address_or_a_64_of_ipv6() {
        let same = |one: &str, other: &str| Site::of(address(one)) == Site::of(address(other));
        assert!(same("1.2.3.4", "::ffff:1.2.3.4") && !same("1.2.3.4", "1.2.3.5"));
        assert!(same("2001:db8:1:2::1", "2001:db8:1:2:ffff::") && !same("2001:db8:1:2::1", "2001:db8:1:3::1"));
        assert!(!same("::ffff:0:1", "::1"));
    }

    #[test]
    fn a_range_contains_the_addresses_with_its_first_bits_however_they_are_written() {
        for (range, inside, outside) in [
            ("127.0.0.0/8", "127.1.2.3", "128.0.0.1"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::1"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.2"),
            ("::1", "::1", "::2"),
            ("fd00::/8", "fdff::1", "fe00::"),
            ("::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.0"),
            ("0.0.0.0/0", "1.2.3.4", "2001:db8::1"),
        ] {
            let parsed = Range::parse(range).unwrap();
            assert!(parsed.contains(address(inside)) && !parsed.contains(address(outside)), "{range}");
        }
        assert!(Range::parse("::/0").unwrap().contains(address("1.2.3.4")));
    }

    #[test]
    fn other_texts_are_not_ranges() {
        for text in ["", "a", "1.2.3", "1.2.3.4/33", "::1/129", "1.2.3.4/", "1.2.3.4/-1", "1.2.3.4/8/8", "/8", "[::1]"] {
            assert_eq!(Range::parse(text), None, "{text}");
        }
    }
}
