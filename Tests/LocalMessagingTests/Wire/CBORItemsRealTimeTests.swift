import TestSupport
import Testing

@testable import LocalMessaging

@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct CBORItemsRealTimeTests {
    /// Each key asked for once, in the order of the map and against it: a search through all keys for each would look at
    /// 10^9 of them and not end within the limit of this suite.
    @Test func `a map of as many keys as are allowed is read key by key`() throws {
        let bounds = MessageBounds(MessagingConfiguration())
        let count = bounds.maximumValueCount - 1
        var map: [String: Int] = [:]
        for index in 0..<count { map["key \(index)"] = index }
        let bytes = try MessageCoding.encode(map)
        #expect(try MessageCoding.decode([String: Int].self, from: bytes, within: bounds) == map)

        struct Backwards: Decodable {
            var sum = 0

            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: AnyKey.self)
                for key in container.allKeys.reversed() { sum += try container.decode(Int.self, forKey: key) }
                for index in 0..<1000 where container.contains(AnyKey("none \(index)")) { sum = 0 }
            }
        }
        let sum = try MessageCoding.decode(Backwards.self, from: bytes, within: bounds).sum
        #expect(sum == count * (count - 1) / 2)
        map["one more"] = 0
        let more = try MessageCoding.encode(map)
        #expect(throws: MessageCoding.Failure.self) {
            try MessageCoding.decode([String: Int].self, from: more, within: bounds)
        }
    }
}
