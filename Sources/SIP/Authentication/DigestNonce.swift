internal import CallBasics
internal import Cryptography

/// A nonce that its server knows again without a table: when it was made, which one it is, and a keyed hash of both.
///
///     time, 16 digits | number, 16 digits | keyed hash, 32 digits
///
/// Source: RFC 7616, section 3.3 (nonce) and 5.4
struct DigestNonce: Hashable, Sendable {
    let time: MediaTime
    /// Nonces of one server count up.
    let number: UInt64

    init(time: MediaTime, number: UInt64) {
        (self.time, self.number) = (time, number)
    }

    /// Nil when it was not made with this key for this realm and kind.
    init?(parsing text: Bytes, realm: Bytes, kind: DigestKind, key: Secret) {
        let number = text.dropFirst(16).prefix(16)
        guard text.count == 64, let time: UInt64 = text.prefix(16).hexadecimal(),
            let number: UInt64 = number.hexadecimal()
        else { return nil }
        self.init(time: MediaTime(nanoseconds: Int64(bitPattern: time)), number: number)
        guard isSameSecret(text, bytes(realm: realm, kind: kind, key: key)) else { return nil }
    }

    func bytes(realm: Bytes, kind: DigestKind, key: Secret) -> Bytes {
        let head = UInt64(bitPattern: time.nanoseconds).hexadecimal + number.hexadecimal
        let subject = head + Bytes(kind == .server ? "s" : "p") + realm
        return head + HashFunction.sha256.keyedHash(of: Array(subject), key: Array(key.bytes)).prefix(16).hexadecimal
    }
}

/// Which counts of which nonces were used, so that no request is let in twice; what it forgets is stale.
struct NonceWindow: Sendable {
    private struct Entry: Sendable {
        var nonce: DigestNonce
        var highest: UInt32
        /// Bit n says that the count n below the highest was used.
        var used: UInt64
    }

    private let capacity: Int
    /// In the order of their numbers; those that were forgotten leave once they are as many as the others.
    private var entries: [Entry] = []
    private var forgottenCount = 0
    /// Nonces below this number were forgotten.
    private var firstNumber: UInt64 = 0

    init(capacity: Int) {
        precondition(capacity > 0)
        self.capacity = capacity
    }

    var count: Int { entries.count - forgottenCount }

    /// Whether the count was not used yet; counts that come out of order are known for 64 of them.
    mutating func use(_ count: UInt32, of nonce: DigestNonce) -> Bool {
        guard nonce.number >= firstNumber else { return false }
        let place = place(of: nonce.number)
        guard place < entries.count, entries[place].nonce == nonce else {
            entries.insert(Entry(nonce: nonce, highest: count, used: 1), at: place)
            if self.count > capacity {
                firstNumber = entries[forgottenCount].nonce.number &+ 1
                forget(1)
            }
            return true
        }
        let highest = entries[place].highest
        if count > highest {
            let distance = count - highest
            entries[place].used = distance < 64 ? entries[place].used << UInt64(distance) | 1 : 1
            entries[place].highest = count
            return true
        }
        let distance = highest - count
        guard distance < 64, entries[place].used & 1 << UInt64(distance) == 0 else { return false }
        entries[place].used |= 1 << UInt64(distance)
        return true
    }

    /// Forgets the nonces that were made before `time`.
    mutating func forget(before time: MediaTime) {
        let kept = entries[forgottenCount...].firstIndex { $0.nonce.time >= time } ?? entries.endIndex
        forget(kept - forgottenCount)
    }

    private mutating func forget(_ count: Int) {
        forgottenCount += count
        guard forgottenCount >= max(entries.count / 2, 1) else { return }
        entries.removeFirst(forgottenCount)
        forgottenCount = 0
    }

    private func place(of number: UInt64) -> Int {
        var (low, high) = (forgottenCount, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].nonce.number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
