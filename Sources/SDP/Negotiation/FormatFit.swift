/// How two formats of one codec go together, one of each side.
public struct FormatFit: Hashable, Sendable {
    /// Decides whether the other side's format and ours go together, and by which parameters; nil when they do not.
    ///
    /// Both have the same name, clock rate and channels already.
    public typealias Rule = @Sendable (_ theirs: PayloadFormat, _ ours: PayloadFormat) -> FormatFit?

    /// The parameters by which we encode for the other side.
    public var sending: String?
    /// The parameters by which we decode, and which our answer says.
    public var receiving: String?

    /// Formats that go together by these parameters.
    public init(sending: String?, receiving: String?) {
        self.sending = sending
        self.receiving = receiving
    }

    /// The rule for codecs that are known here; for all others each side's parameters say what it wants to get.
    ///
    /// - `telephone-event`: the events that both know; none is no fit (RFC 4733, section 2.4.1).
    /// - `G729`: Annex B when both have it (RFC 4856, section 2.1.9).
    /// - `iLBC`: blocks of 20 ms when both ask for them, else of 30 ms (RFC 3952, section 5).
    /// - `AMR`, `AMR-WB`: what changes the payload's layout must be the same (RFC 4867, section 8.3.1).
    public static let standard: Rule = { theirs, ours in
        if ours.role == .telephoneEvent {
            if let own = ours.parameters, own == theirs.parameters { return FormatFit(sending: own, receiving: own) }
            let events = TelephoneEvents(parameters: theirs.parameters)
                .intersection(TelephoneEvents(parameters: ours.parameters))
            return events.isEmpty ? nil : FormatFit(sending: events.parameters, receiving: events.parameters)
        }
        if ours.isNamed("G729"), [theirs, ours].contains(where: { $0.parameter("annexb")?.isNamed("no") ?? false }) {
            return FormatFit(sending: "annexb=no", receiving: "annexb=no")
        }
        if ours.isNamed("iLBC") {
            let mode = [theirs, ours].allSatisfy { $0.parameter("mode") == "20" } ? "mode=20" : "mode=30"
            return FormatFit(sending: mode, receiving: mode)
        }
        if ours.isNamed("AMR") || ours.isNamed("AMR-WB") {
            let layout = ["octet-align", "crc", "robust-sorting", "interleaving"]
            let isSame = layout.allSatisfy { (theirs.parameter($0) ?? "0") == (ours.parameter($0) ?? "0") }
            guard isSame else { return nil }
        }
        return FormatFit(sending: theirs.parameters, receiving: ours.parameters)
    }
}

/// A format of the other side and the one of ours that it goes with.
struct FormatPair: Hashable {
    var theirs: PayloadFormat
    var ours: PayloadFormat
    /// The place of ours in the list it comes from.
    let place: Int

    /// The formats that go together, in the other side's order; each is used once.
    ///
    /// Of several of ours the one with the same number is taken first.
    static func matching(_ theirs: [PayloadFormat], _ ours: [PayloadFormat], by rule: FormatFit.Rule) -> [FormatPair] {
        var pairs: [FormatPair] = []
        var isUsed = [Bool](repeating: false, count: ours.count)
        for offered in theirs {
            func find(_ hasSameNumber: Bool) -> FormatPair? {
                for (index, own) in ours.enumerated() {
                    guard !isUsed[index], own.clockRate == offered.clockRate,
                        (own.payloadType == offered.payloadType) == hasSameNumber, own.isSameCodec(as: offered),
                        let fit = rule(offered, own)
                    else { continue }
                    var pair = FormatPair(theirs: offered, ours: own, place: index)
                    pair.theirs.parameters = fit.sending
                    pair.ours.parameters = fit.receiving
                    return pair
                }
                return nil
            }
            guard let pair = find(true) ?? find(false) else { continue }
            isUsed[pair.place] = true
            pairs.append(pair)
        }
        return pairs
    }
}

extension [FormatPair] {
    var hasCodec: Bool { contains { $0.ours.role == .codec } }

    /// The pairs that an answer has: telephone events and comfort noise of the clock rates of its codecs.
    ///
    /// Many offer telephone events at 8000 Hz beside Opus only: where a codec would have none, these are taken
    /// (RFC 4733, section 2.1, asks for the same clock rate).
    var answering: [FormatPair] {
        let rates = Set(filter { $0.ours.role == .codec }.map(\.ours.clockRate))
        guard !rates.isEmpty else { return self }
        let events = filter { $0.ours.role == .telephoneEvent }
        var eventRates = rates.filter { rate in events.contains { $0.ours.clockRate == rate } }
        if eventRates.count < rates.count,
            let other = events.first(where: { $0.ours.clockRate == 8000 }) ?? events.first
        {
            eventRates.insert(other.ours.clockRate)
        }
        return filter { pair in
            switch pair.ours.role {
            case .codec, .redundancy: true
            case .telephoneEvent: eventRates.contains(pair.ours.clockRate)
            case .comfortNoise: rates.contains(pair.ours.clockRate)
            }
        }
    }

    /// The pairs without redundancy that repeats something which was not agreed, on either side.
    var withSoundRedundancy: [FormatPair] {
        let plain = filter { $0.ours.role != .redundancy }
        guard plain.count < count else { return self }
        let theirs = Set(plain.map(\.theirs.payloadType))
        let ours = Set(plain.map(\.ours.payloadType))
        func names(_ format: PayloadFormat, only numbers: Set<UInt8>) -> Bool {
            guard let types = format.repeatedTypes else { return true }
            return !types.isEmpty && types.allSatisfy(numbers.contains)
        }
        return filter { pair in
            guard pair.ours.role == .redundancy else { return true }
            let hasRate = plain.contains { $0.ours.role == .codec && $0.ours.clockRate == pair.ours.clockRate }
            return hasRate && names(pair.theirs, only: theirs) && names(pair.ours, only: ours)
        }
    }
}
