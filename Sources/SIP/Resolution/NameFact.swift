internal import CallBasics

/// What is known about a question.
enum NameFact: Hashable, Sendable {
    case values([DNSRecord.Value])
    case noSuchName
    case noData
    /// It could not be learnt.
    case unknown

    /// How many records of an answer are looked at, aliases followed, and values kept.
    static let (recordCount, aliasCount, valueCount) = (256, 8, 32)

    /// What an answer says, and for how long; nil when it tells no time.
    ///
    /// Only records count whose owner is the name asked for, or one that its aliases lead to.
    static func read(_ answer: DNSAnswer, to question: DNSQuestion) -> (fact: NameFact, life: Duration?) {
        switch answer {
        case .records(let records): read(records.prefix(recordCount), to: question)
        case .noSuchName(let life): (.noSuchName, life)
        case .noData(let life): (.noData, life)
        case .failure, .timeout: (.unknown, nil)
        }
    }

    private static func read(_ records: ArraySlice<DNSRecord>, to question: DNSQuestion) -> (NameFact, Duration?) {
        var (owner, seconds) = (question.name, UInt32.max)
        for _ in 0...aliasCount {
            let own = records.filter { $0.owner == owner }
            let found = own.filter { $0.value.fits(question.kind) }.prefix(valueCount)
            if !found.isEmpty {
                seconds = found.reduce(seconds) { min($0, $1.timeToLiveSeconds) }
                return (.values(found.map(\.value)), .seconds(seconds))
            }
            let aliases = own.compactMap { record -> (DNSName, UInt32)? in
                guard case .alias(let name) = record.value else { return nil }
                return (name, record.timeToLiveSeconds)
            }
            guard let (name, life) = aliases.first else { break }
            (owner, seconds) = (name, min(seconds, life))
        }
        return (.noData, nil)
    }
}

/// A fact with its age.
struct KnownFact: Hashable, Sendable {
    var fact: NameFact
    /// When it has to be asked again.
    var expires: MediaTime
    /// Whether it should have been asked again already, but nobody answered.
    var isStale = false

    /// When values that were found have to be asked for again; nil when there are none.
    var expiryOfValues: MediaTime? { if case .values = fact { expires } else { nil } }
}
