internal import CallBasics

/// What the payload types of one medium have stood for in this session, so that none gets another meaning.
///
/// Source: RFC 3264, section 8.3.2.
struct PayloadTypeMap: Hashable, Sendable {
    /// The last meaning of each number, the latest one last.
    private var formats: [PayloadFormat] = []

    /// Notes what the numbers of our description stand for.
    ///
    /// An answer has the other side's numbers, and that side may not care for this rule: the new meaning counts.
    mutating func record(_ described: [PayloadFormat]) {
        for format in described {
            formats.removeAll { $0.payloadType == format.payloadType }
            formats.append(format)
        }
    }

    mutating func record(_ other: PayloadTypeMap) { record(other.formats) }

    /// `formats` with numbers that mean the same as before: static ones, those used in this session for the same format,
    /// the ones wished, or free dynamic ones.
    ///
    /// Throws: `invalidConfiguration` when no number is free.
    func numbered(_ wishes: [PayloadFormat], by rule: FormatFit.Rule) throws(SDPError) -> [PayloadFormat] {
        var taken: Set<UInt8> = []
        var renamed: [UInt8: UInt8] = [:]
        var result: [PayloadFormat] = []
        for wish in wishes {
            guard let number = number(for: wish, besides: taken, by: rule) else {
                throw SDPError(
                    .invalidConfiguration,
                    "No payload type is left for \(wish.encodingName.excerpt). Offer fewer formats."
                )
            }
            taken.insert(number)
            if renamed[wish.payloadType] == nil { renamed[wish.payloadType] = number }
            var format = wish
            format.payloadType = number
            result.append(format)
        }
        for index in result.indices where result[index].role == .redundancy {
            guard let types = result[index].repeatedTypes else { continue }
            result[index].parameters = types.map { "\(renamed[$0] ?? $0)" }.joined(separator: "/")
        }
        return result
    }

    private func number(for wish: PayloadFormat, besides taken: Set<UInt8>, by rule: FormatFit.Rule) -> UInt8? {
        let known = PayloadFormat(staticPayloadType: wish.payloadType)
        if let known, known.isSameCodec(as: wish), !taken.contains(wish.payloadType) { return wish.payloadType }
        let same = formats.last { used in
            !taken.contains(used.payloadType) && used.isSameCodec(as: wish)
                && (wish.role == .redundancy || rule(used, wish) != nil)
        }
        if let same { return same.payloadType }
        func isFree(_ number: UInt8) -> Bool {
            !taken.contains(number) && !formats.contains { $0.payloadType == number }
        }
        if Self.dynamicTypes.contains(wish.payloadType), isFree(wish.payloadType) { return wish.payloadType }
        return Self.dynamicTypes.first(where: isFree)
    }

    /// The dynamic types, then those that are not assigned; from 64 to 95 RTCP's types lie (RFC 5761, section 4).
    private static let dynamicTypes = Array(UInt8(96)...127) + Array(UInt8(35)...63)
}
