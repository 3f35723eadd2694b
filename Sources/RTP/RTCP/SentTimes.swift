/// The last times that were sent to be answered, so that an answer to none of them is known to be false.
struct SentTimes: BitwiseCopyable {
    private static var capacity: Int { 8 }

    private var times = InlineArray<8, UInt32>(repeating: 0)
    private var count = 0

    /// Takes a time, the middle 32 bits, in place of the oldest.
    mutating func append(_ time: UInt32) {
        times[count % Self.capacity] = time
        count &+= 1
    }

    /// Whether `time` is among the last.
    func contains(_ time: UInt32) -> Bool {
        for index in 0..<min(count, Self.capacity) where times[index] == time { return true }
        return false
    }
}
