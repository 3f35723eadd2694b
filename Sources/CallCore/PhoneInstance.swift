/// What a phone is known by at servers, whatever its address is.
///
/// Source: RFC 5626, section 4.1; RFC 9562, section 5.4
enum PhoneInstance {
    /// A URN of a UUID that nobody else has.
    static func random() -> String {
        var octets = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        octets[6] = octets[6] & 0x0F | 0x40
        octets[8] = octets[8] & 0x3F | 0x80
        let digits = octets.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
        let groups = [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { digits[$0].joined() }
        return "urn:uuid:" + groups.joined(separator: "-")
    }
}
