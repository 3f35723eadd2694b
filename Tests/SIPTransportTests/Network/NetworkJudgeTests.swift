import CallBasics
import Testing

@testable import SIPTransport

/// What the kernel answers and tells, and what is told of it.
@Suite struct NetworkJudgeTests {
    /// Three lines, each of times in ms and what is then.
    ///
    /// - `kernel` what it answers from then on: A and B are two addresses by two interfaces, a is the address of A by the
    ///   interface of B, - is none
    /// - `tells` its messages: A-, A+ an address, A! it is another's, A~ a temporary one beside it; off, on, out, gone the
    ///   interface of A is switched off, on, has no cable, is gone; route, rule, overrun
    /// - `told` what comes of it: +A found, -A lost, A>B changed
    struct Timeline: CustomTestStringConvertible {
        let title: String
        let kernel: String
        let tells: String
        let told: String
        var testDescription: String { title }

        init(_ title: String, kernel: String, tells: String, told: String) {
            (self.title, self.kernel, self.tells, self.told) = (title, kernel, tells, told)
        }
    }

    private static let timelines = [
        Timeline("the first way is found", kernel: "0 A", tells: "", told: "0 +A"),
        Timeline("no way at first", kernel: "0 -   50 A", tells: "50 A+", told: "50 +A"),

        // What changes nothing.
        Timeline("temporary addresses", kernel: "0 A", tells: "50 A~   60 A~   500 A~", told: "0 +A"),
        Timeline("a renewal", kernel: "0 A", tells: "50 A+   60 route   61 route", told: "0 +A"),
        Timeline("bridges come and go", kernel: "0 A", tells: "50 B+   51 route   52 B-   53 route", told: "0 +A"),
        Timeline("an address is set anew", kernel: "0 A", tells: "50 A-   51 A+", told: "0 +A"),
        Timeline("a loss of messages", kernel: "0 A", tells: "50 overrun", told: "0 +A"),
        Timeline("a route is set anew", kernel: "0 A   50 -   70 A", tells: "50 route   70 route", told: "0 +A"),
        Timeline("a cable is pulled for 80 ms", kernel: "0 A   50 -   130 A", tells: "50 out   130 on", told: "0 +A"),

        // What is lost counts at once.
        Timeline("the address goes", kernel: "0 A   50 -", tells: "50 A-", told: "0 +A   50 -A"),
        Timeline("another takes its place", kernel: "0 A   50 B", tells: "50 A-", told: "0 +A   50 A>B"),
        Timeline("others have the address", kernel: "0 A   50 B", tells: "50 A!", told: "0 +A   50 A>B"),
        Timeline("the interface is switched off", kernel: "0 A   50 B", tells: "50 off", told: "0 +A   50 A>B"),
        Timeline("the interface goes", kernel: "0 A   50 -", tells: "50 gone", told: "0 +A   50 -A"),
        Timeline("what was missed may be that", kernel: "0 A   50 B", tells: "50 overrun", told: "0 +A   50 A>B"),
        Timeline("the routes go 13 ms later", kernel: "0 A   63 B", tells: "50 A-", told: "0 +A   65 A>B"),
        Timeline("lost, then found", kernel: "0 A   50 -   60 B", tells: "50 A-   60 B+", told: "0 +A   50 -A   60 +B"),

        // What is gained has to last.
        Timeline("a better way", kernel: "0 A   50 B", tells: "50 route", told: "0 +A   150 A>B"),
        Timeline("a VPN", kernel: "0 A   50 B", tells: "50 rule", told: "0 +A   150 A>B"),
        Timeline("another interface", kernel: "0 A   50 a", tells: "50 route", told: "0 +A   150 A>a"),
        Timeline("a better way for 80 ms", kernel: "0 A   50 B   130 A", tells: "50 route   130 route", told: "0 +A"),
        Timeline("the last counts", kernel: "0 A   50 B   90 a", tells: "50 route   90 route", told: "0 +A   150 A>a"),
        Timeline("and back", kernel: "0 A   50 B   300 A", tells: "50 B+   300 B-", told: "0 +A   150 A>B   300 B>A"),
        Timeline("then the old goes", kernel: "0 A   50 B", tells: "50 route   70 A-", told: "0 +A   70 A>B"),
        Timeline("the routes go", kernel: "0 A   50 -", tells: "50 route", told: "0 +A   150 -A"),
        Timeline("the cable is pulled", kernel: "0 A   50 -", tells: "50 out", told: "0 +A   150 -A"),
        // It comes later than the message, and is seen by the look that follows.
        Timeline("without a message of its own", kernel: "0 A   60 B", tells: "50 B+", told: "0 +A   250 A>B"),
    ]

    @Test(arguments: timelines) func `the way is told`(timeline: Timeline) {
        #expect(Self.run(timeline.kernel, timeline.tells).told == timeline.told)
    }

    @Test func `a storm of messages holds nothing up, and is forgotten when it is over`() {
        let storm = stride(from: 10, through: 1000, by: 10).map { "\($0) A~" }.joined(separator: "   ")
        let gain = Self.run("0 A   50 B", storm)
        #expect(gain.told == "0 +A   150 A>B")
        #expect(gain.questionCount < 130)
        #expect(Self.run("0 A   500 -", storm.replacing("500 A~", with: "500 A-")).told == "0 +A   500 -A")
    }

    @Test func `nobody is asked while nothing happens`() {
        #expect(Self.run("0 A", "").questionCount == 1)
        // At once and at the end of the settle time.
        #expect(Self.run("0 A", "50 route").questionCount == 3)
        // And every 5 ms while the kernel names an address that it said was gone.
        #expect(Self.run("0 A", "50 A-").questionCount == 22)
    }

    @Test func `a look before its time asks nothing`() {
        var judge = NetworkJudge(at: .zero + .seconds(1))
        #expect(judge.handle([], at: .zero, asking: { Self.path("A") }) == nil)
        #expect(judge.path == nil && judge.deadline == .zero + .seconds(1))
    }

    // MARK: The timeline

    /// Hands over the messages at their times, and nothing at each deadline.
    private static func run(_ kernel: String, _ tells: String) -> (told: String, questionCount: Int) {
        let answers = steps(kernel)
        var messages = steps(tells)[...]
        var judge = NetworkJudge(at: .zero)
        var (told, questionCount): ([String], Int) = ([], 0)
        while let time = [messages.first.map { milliseconds($0.time) }, judge.deadline].compactMap(\.self).min() {
            let isTold = messages.first.map { milliseconds($0.time) == time } ?? false
            let news = isTold ? [message(messages.removeFirst().word)] : []
            let change = judge.handle(news, at: time) {
                questionCount += 1
                return answers.last { milliseconds($0.time) <= time }.flatMap { path($0.word) }
            }
            if let change { told.append("\(time.nanoseconds / 1_000_000) \(text(change))") }
        }
        return (told.joined(separator: "   "), questionCount)
    }

    private static func steps(_ text: String) -> [(time: Int, word: String)] {
        let words = text.split(separator: " ").map(String.init)
        return stride(from: 0, to: words.count, by: 2).map { (Int(words[$0]) ?? -1, words[$0 + 1]) }
    }

    private static func milliseconds(_ count: Int) -> MediaTime { .zero + .milliseconds(count) }

    private static func path(_ letter: String) -> NetworkPath? {
        let (first, second) = (SocketAddress(ipv4: 0xC000_0201, port: 0), SocketAddress(ipv4: 0xC633_6401, port: 0))
        switch letter {
        case "A": return NetworkPath(first, by: 2)
        case "a": return NetworkPath(first, by: 3)
        case "B": return NetworkPath(second, by: 3)
        default: return nil
        }
    }

    private static func letter(_ path: NetworkPath) -> String {
        ["A", "a", "B"].first { Self.path($0) == path } ?? "?"
    }

    private static func message(_ word: String) -> RouteMessage {
        switch word {
        case "off": .link(LinkNotice(2, "eth0", isUp: false, isRunning: false))
        case "on": .link(LinkNotice(2, "eth0", isUp: true, isRunning: true))
        case "out": .link(LinkNotice(2, "eth0", isUp: true, isRunning: false))
        case "gone": .link(LinkNotice(2, "eth0", isGone: true, isUp: false, isRunning: false))
        case "route": .route(RouteNotice(isAdded: true, isDefault: true))
        case "rule": .rule
        case "overrun": .overrun
        default: address(word)
        }
    }

    private static func address(_ word: String) -> RouteMessage {
        guard let path = path(String(word.prefix(1))) else { return .overrun }
        let isTemporary = word.hasSuffix("~")
        let address = isTemporary ? SocketAddress(ipv6High: 0x2001_0DB8 << 32, low: 7, port: 0) : path.source
        let notice = AddressNotice(
            address,
            on: path.interface,
            isAdded: !word.hasSuffix("-"),
            isDuplicate: word.hasSuffix("!"),
            isTemporary: isTemporary
        )
        return .address(notice)
    }

    private static func text(_ change: NetworkChange) -> String {
        switch change {
        case .found(let path): "+\(letter(path))"
        case .lost(let path): "-\(letter(path))"
        case .changed(let old, let new): "\(letter(old))>\(letter(new))"
        }
    }
}
