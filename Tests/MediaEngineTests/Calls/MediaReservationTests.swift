@testable import MediaEngine
import Testing

/// Who has the ports that were reserved for a call.
@Suite struct MediaReservationTests {
    @Test func `ports that were released while a call took them stay closed when that comes to nothing`() throws {
        let link = MemoryLink.pair().0
        let reservation = MediaReservation(CallSockets(link, local: link.localAddress))
        reservation.giveBack(try reservation.take())
        let taken = try reservation.take()
        reservation.release()
        reservation.giveBack(taken)
        #expect(throws: EngineError.self) { try reservation.take() }
    }
}
