/// The telephone events that a side takes: the parameters of "telephone-event".
///
///     0-15,32,66-70
///
/// Source: RFC 4733, section 2.4.1.
package struct TelephoneEvents: Hashable, Sendable {
    private var words = SIMD4<UInt64>()

    /// The keys of a telephone, which who says nothing takes.
    package static let keys = TelephoneEvents(0...15)

    package init(_ range: ClosedRange<UInt8>) { insert(range) }

    /// The events that `parameters` name; the keys when it is nil or not a list of events.
    package init(parameters: String?) {
        self = parameters.flatMap { Self(list: Bytes($0)) } ?? .keys
    }

    private init?(list: Bytes) {
        var rest = list.withoutLeadingBlanks
        // Some write the name of the parameter, too, and further parameters behind the list.
        if rest.prefix(7).isNamed("events=") { rest = rest.dropFirst(7) }
        rest = rest.take(before: UInt8(ascii: ";"))
        guard rest.trimmed != nil else { return nil }
        while !rest.isEmpty {
            var item = rest.take(before: UInt8(ascii: ","))
            guard let first: UInt8 = item.take(before: UInt8(ascii: "-")).trimmed?.decimal() else { return nil }
            var last = first
            if let bound = item.trimmed {
                guard let value: UInt8 = bound.decimal(), value >= first else { return nil }
                last = value
            }
            insert(first...last)
        }
    }

    package var isEmpty: Bool { words == SIMD4() }

    package func contains(_ event: UInt8) -> Bool {
        words[Int(event >> 6)] & (1 << UInt64(event & 63)) != 0
    }

    package func intersection(_ other: TelephoneEvents) -> TelephoneEvents {
        var result = self
        result.words &= other.words
        return result
    }

    /// The list, as short as it can be; empty when there are none.
    package var parameters: String {
        var items: [String] = []
        var event = 0
        while event < 256 {
            guard contains(UInt8(event)) else {
                event += words[event >> 6] >> UInt64(event & 63) == 0 ? 64 - event & 63 : 1
                continue
            }
            let first = event
            while event < 255, contains(UInt8(event + 1)) { event += 1 }
            items.append(first == event ? "\(first)" : "\(first)-\(event)")
            event += 1
        }
        return items.joined(separator: ",")
    }

    private mutating func insert(_ range: ClosedRange<UInt8>) {
        for index in 0..<4 {
            let first = max(Int(range.lowerBound), 64 * index)
            let last = min(Int(range.upperBound), 64 * index + 63)
            guard first <= last else { continue }
            words[index] |= (UInt64.max >> UInt64(63 - (last - first))) << UInt64(first - 64 * index)
        }
    }
}
