/// What goes wrong with a card is counted and told in one place, whichever way its frames go.
///
/// Thread: media.
extension CardStatistics {
    /// Counts what was wrong with `transfer`, and tells of an xrun or a suspend.
    mutating func note(_ transfer: CardTransfer, _ io: borrowing FilterIO) {
        framesLost &+= transfer.lostFrameCount
        switch transfer.condition {
        case .xrun:
            xruns &+= 1
            io.emit("xrun", value: Int64(transfer.lostFrameCount))
        case .suspended:
            suspends &+= 1
            io.emit("suspend", value: Int64(transfer.lostFrameCount))
        case .running, .gone:
            break
        }
    }

    /// Counts a stall, and tells of it and of its end; answers whether the card is to be given up.
    mutating func note(_ finding: StallDetector.Finding, _ io: borrowing FilterIO) -> Bool {
        switch finding {
        case .nothing:
            break
        case .stalled:
            stalls &+= 1
            io.emit("stall")
        case .resumed(let duration):
            io.emit("moving", value: duration.nanoseconds / 1_000_000)
        case .hopeless:
            return true
        }
        return false
    }
}
