/// A domain name, compared without case: in small letters, without a dot at its end; that of the root is empty.
///
/// Source: RFC 1035, section 2.3.4; RFC 4343
package struct DNSName: Hashable, Sendable, CustomStringConvertible {
    private let bytes: [UInt8]

    /// Nil when a label is empty or has more than 63 bytes, or the name more than 253.
    package init?(_ text: some Collection<UInt8>) {
        let isRoot = text.count == 1 && text.first == 0x2E
        let name = text.suffix(1).first == 0x2E ? Array(text.dropLast()) : Array(text)
        let labels = name.split(separator: 0x2E, omittingEmptySubsequences: false)
        guard name.count <= 253, isRoot || labels.allSatisfy({ 1...63 ~= $0.count }) else { return nil }
        bytes = name.map(\.lowercase)
    }

    package init?(_ text: String) { self.init(text.utf8) }

    /// Whether it is the root, which an SRV record names when there is no such service.
    package var isRoot: Bool { bytes.isEmpty }

    /// The name with `labels` before it; nil when that is too long.
    func below(_ labels: String) -> DNSName? { DNSName(labels.utf8 + [0x2E] + bytes) }

    /// The name as it is written, the root as a dot.
    package var description: String { isRoot ? "." : bytes[...].text }
}
