import Synchronization

/// Passes objects to the media thread and takes them back, so that they are made and freed elsewhere.
///
/// The control side `offer`s an object; the media thread `take`s it at a moment of its choosing and `retire`s the one
/// that it replaces; the control side frees what was retired in its next `offer` or `reclaim`. Only the newest offer
/// counts: one that was never taken is freed by the next.
/// Thread: `offer` and `reclaim` control (any thread, in turn), `take` and `retire` media.
package final class HandOff<Object: AnyObject>: @unchecked Sendable {
    private let offered = Atomic<UnsafeRawPointer?>(nil)
    private let retired: RingBuffer<Unmanaged<Object>>
    private let controlLock = Mutex(())

    /// A hand-off that can hold `capacity` retired objects between two calls of `reclaim`.
    package init(capacity: Int = 64) {
        retired = RingBuffer(minimumCapacity: capacity)
    }

    deinit {
        release(offered.exchange(nil, ordering: .acquiringAndReleasing))
        while let object = retired.pop() { object.release() }
    }

    /// Makes `object` the next to be taken, and frees what the media thread has retired.
    package func offer(_ object: Object) {
        let pointer = UnsafeRawPointer(Unmanaged.passRetained(object).toOpaque())
        release(offered.exchange(pointer, ordering: .acquiringAndReleasing))
        reclaim()
    }

    /// Frees what the media thread has retired.
    package func reclaim() {
        controlLock.withLock { _ in
            while let object = retired.pop() { object.release() }
        }
    }

    /// The newest offer, once; nil when there is none.
    ///
    /// The caller owns it and must `retire` it in the end.
    ///
    /// Answers nil, too, while so many retired objects wait that this one could not be given back later.
    package func take() -> Unmanaged<Object>? {
        guard offered.load(ordering: .relaxed) != nil, retired.freeCount > 1,
            let pointer = offered.exchange(nil, ordering: .acquiringAndReleasing)
        else {
            return nil
        }
        return Unmanaged.fromOpaque(pointer)
    }

    /// Gives an object that was taken back to the control side.
    package func retire(_ object: Unmanaged<Object>) {
        retired.push(object)
    }

    private func release(_ pointer: UnsafeRawPointer?) {
        guard let pointer else { return }
        Unmanaged<Object>.fromOpaque(pointer).release()
    }
}
