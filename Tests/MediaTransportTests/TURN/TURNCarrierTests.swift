import CallBasics
import TestSupport
import Testing

@testable import MediaTransport

/// Addresses at a relay that a connection leads to; time is an argument.
@Suite(.tags(.rfc)) struct TURNCarrierTests {
    private typealias Stage = TURNStage
    private static let server = Stage.server

    @Test func `by a connection each request is sent once, and the port is not seen`() {
        var stage = Stage(by: TestCarrier(at: Self.server))
        let first = stage.allocation.takeDatagrams().count
        stage.allocation.advance(to: .zero + .seconds(39))
        let later = stage.allocation.takeDatagrams().count
        #expect(first == 1 && later == 0 && stage.allocation.isPending)
        stage.allocation.advance(to: .zero + .milliseconds(39_500))
        #expect(stage.allocation.failure == .silent)
        stage = Stage(by: TestCarrier(at: Self.server))
        stage.run()
        #expect(stage.allocation.relayed != nil && stage.allocation.mapped == nil)
    }

    @Test func `the end of the connection is that of the address`() {
        for isTold in [true, false] {
            let carrier = TestCarrier(at: Self.server)
            var stage = Stage(by: carrier)
            stage.run()
            // Anybody could send that.
            _ = stage.allocation.take([], at: stage.now)
            #expect(stage.allocation.relayed != nil && !carrier.isClosed)
            carrier.failure = "it has ended the connection"
            // What tells it may be lost.
            if isTold { _ = stage.allocation.take([], at: stage.now) } else { stage.allocation.advance(to: stage.now) }
            #expect(stage.allocation.relayed == nil && carrier.isClosed)
            #expect(stage.allocation.failure == .disconnected("it has ended the connection"))
        }
        var other = Stage()
        other.run()
        _ = other.allocation.take([], at: other.now)
        #expect(other.allocation.relayed != nil)
    }

    @Test func `an address that is given back ends the connection`() {
        let carrier = TestCarrier(at: Self.server)
        var stage = Stage(by: carrier)
        stage.run()
        #expect(!carrier.isClosed)
        stage.allocation.close(at: stage.now)
        stage.run()
        #expect(carrier.isClosed && stage.server.clientCount == 0)
    }
}
